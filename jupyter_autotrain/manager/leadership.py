"""The claim of the one manager of a home: the lock file that it holds, its identity in it, and the store's lease.

The lock keeps others from starting; the lease fences off a manager that lost leadership. The lock file or the whole
home may be deleted under a running manager, so each step checks that both are still its own.
"""

from __future__ import annotations

import logging
import os

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.manager.contact import ManagerIdentity
from jupyter_autotrain.manager.start import is_lock_in_place, take_lock
from jupyter_autotrain.store import Store

_log = logging.getLogger(__name__)


class Leadership:
    """Held from the start of a manager to its end.

    Args:
        home: The home.
        store: Its store; it writes under the lease from now on.
        lock: The open lock file, locked by this process.
        me: This process.
    """

    def __init__(self, home: Home, store: Store, lock: int, me: ManagerIdentity) -> None:
        self._home = home
        self._store = store
        self._lock = lock
        self._me = me
        # Held open, so that a recreated home cannot reuse this inode number.
        self._root = os.open(home.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._published = False
        generation = store.take_lease(f"pid {me.pid} on {me.host}")
        _log.info("serving %s under lease %d", home.root, generation)

    def publish_identity(self, present: bool) -> None:
        """Write the manager's identity into the lock file, or clear it."""
        self._published = present
        if present:
            self._me.write(self._lock)
        else:
            self._me.clear(self._lock)

    def renew(self) -> None:
        """Check that this is still the manager, and take the lock again when its file was deleted.

        Raises:
            SystemExit: The home is gone, or another manager serves it; this one has to end at once.
        """
        if is_lock_in_place(self._home, self._lock):
            return
        if not self._is_home_there():
            raise SystemExit(f"the home {self._home.root} was removed")
        again = take_lock(self._home)
        if again is None:
            raise SystemExit(f"another manager serves {self._home.root}: the lock file of this one was deleted")
        os.dup2(again, self._lock, inheritable=False)
        os.close(again)
        self._store.confirm_lease()
        self.publish_identity(self._published)
        _log.warning("the lock file was deleted; it is back")

    def close(self) -> None:
        """Close the home's folder; the lock is released when the process ends."""
        os.close(self._root)

    def _is_home_there(self) -> bool:
        try:
            return os.path.samestat(self._home.root.stat(), os.fstat(self._root))
        except OSError:
            return False

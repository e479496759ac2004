"""`should_stop()` with several ranks: the same answer for all at the same call.

Rank 0 decides, and publishes how many calls it has answered and at which one it has said yes. Another rank that makes
its n-th call takes what rank 0 said at its own n-th, and waits for it only when rank 0 is not that far. So all ranks
have to call it equally often; one that waits in vain for long decides by itself from then on.

What rank 0 says lies in a file that the ranks of a node share, and with several nodes in the store of PyTorch's process
group. Without one the first rank of each node decides for its node; where the backend helps, it tells how far it is,
waits, and gets the call at which the node that is furthest has come to: there all say yes (see `rank_agreement`).
"""

from __future__ import annotations

import contextlib
import os
import struct
import time
from collections.abc import Callable

_FORMAT = "<qq"
_PAUSE_S = 0.0005
_MOST_PAUSE_S = 0.01
_LONGEST_WAIT_S = 30.0
_ALL_CALLS = 1 << 62
_KEY = "jupyter_autotrain/should_stop"


class AnswerBoard:
    """Where the answers are published: the number of answered calls, and the call of the yes, or -1."""

    def publish(self, answered: int, stop_call: int) -> None:
        """Publish both."""
        raise NotImplementedError

    def look(self) -> tuple[int, int]:
        """What was published last; (0, -1) before."""
        raise NotImplementedError


class FileBoard(AnswerBoard):
    """Answers in a file that all ranks of a node see.

    Args:
        path: The file.
    """

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def publish(self, answered: int, stop_call: int) -> None:
        """Write both numbers at once."""
        os.pwrite(self._fd, struct.pack(_FORMAT, answered, stop_call), 0)

    def look(self) -> tuple[int, int]:
        """Read both; nothing is answered before the first write."""
        data = os.pread(self._fd, struct.calcsize(_FORMAT), 0)
        if len(data) < struct.calcsize(_FORMAT):
            return 0, -1
        answered, stop_call = struct.unpack(_FORMAT, data)
        return answered, stop_call


class StoreBoard(AnswerBoard):
    """Answers in the store of PyTorch's process group.

    Args:
        store: The store.
    """

    def __init__(self, store: object) -> None:
        self._store = store

    def publish(self, answered: int, stop_call: int) -> None:
        """Set both as one value."""
        self._store.set(_KEY, f"{answered} {stop_call}")  # type: ignore[attr-defined] # a torch Store

    def look(self) -> tuple[int, int]:
        """Ask for the value; waits until there is one."""
        answered, stop_call = self._store.get(_KEY).split()  # type: ignore[attr-defined] # a torch Store
        return int(answered), int(stop_call)


class StopAgreement:
    """The answers of one rank.

    Args:
        board: Where answers are published.
        decides: True for the rank whose answer counts.
        look: Whether a stop is asked for.
        on_alone: Called when this rank decides by itself from now on.
        agree: Takes the call at which a stop was first seen, gives the call at which to say yes: that one, or a later.
    """

    def __init__(
        self, board: AnswerBoard, decides: bool, look: Callable[[], bool], on_alone: Callable[[], None],
        agree: Callable[[int], int] = int,
    ) -> None:  # fmt: skip
        self._board = board
        self._agree = agree
        self._decides = decides
        self._look = look
        self._on_alone = on_alone
        self._is_alone = False
        self._calls = 0
        self._stop_call = -1

    def ask(self) -> bool:
        """The answer to this rank's next call."""
        call = self._calls
        self._calls += 1
        if self._is_alone:
            return self._look()
        if self._decides:
            if self._stop_call < 0 and self._look():
                self._stop_call = self._agree(call)
            self._board.publish(self._calls, self._stop_call)
        elif self._stop_call < 0 and not self._follow(call):
            return self._look()
        return 0 <= self._stop_call <= call

    def close(self) -> None:
        """This rank asks no more: if it decides, no other rank waits for it any longer."""
        if self._decides:
            with contextlib.suppress(RuntimeError, OSError):  # the store is gone, and so are its readers
                self._board.publish(_ALL_CALLS, self._stop_call)

    def _follow(self, call: int) -> bool:
        """Wait until rank 0 has answered this call; False when it does not for long."""
        deadline = time.monotonic() + _LONGEST_WAIT_S
        pause_s = _PAUSE_S
        while True:
            try:
                answered, self._stop_call = self._board.look()
            except RuntimeError:  # the store of a process group that was left
                self._is_alone = True
                return False
            if answered > call or self._stop_call >= 0:
                return True
            if time.monotonic() > deadline:
                self._is_alone = True
                self._on_alone()
                return False
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _MOST_PAUSE_S)


def process_group_store() -> object | None:
    """The store of PyTorch's process group; None where there is no group."""
    import sys  # noqa: PLC0415 - only trials with several ranks pay

    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    try:
        store: object = distributed.distributed_c10d._get_default_store()  # noqa: SLF001 - there is no public way
    except (AttributeError, RuntimeError, ValueError):
        return None
    return store

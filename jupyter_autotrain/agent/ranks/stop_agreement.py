"""`should_stop()` with several ranks: the same answer for all at the same call.

Rank 0 decides, and publishes how many calls it has answered and at which one it has said yes. Another rank that makes
its n-th call takes what rank 0 said at its own n-th, and waits for it only when rank 0 is not that far. So all ranks
have to call it equally often; one that waits in vain for long decides by itself from then on.

What rank 0 says lies in a file that the ranks of a node share, and with several nodes in the store of PyTorch's process
group. Without one the first rank of each node decides for its node: it tells the supervisor how far it is, waits, and
gets the call that the node which is furthest has come to. There all say yes.
"""

from __future__ import annotations

import contextlib
import os
import struct
import time
from collections.abc import Callable

from jupyter_autotrain.agent import fields, files, wire

_FORMAT = "<qq"
_PAUSE_S = 0.0005
_MOST_PAUSE_S = 0.01
_LONGEST_WAIT_S = 30.0
_ALL_CALLS = 1 << 62
_KEY = "jupyter_autotrain/should_stop"
_LONGEST_AGREEMENT_S = 20.0  # less than the ranks of a node wait for their first one
_AGREEMENT_PAUSE_S = 0.02
_ALONE = (
    "should_stop() waited long for rank 0, which calls it less often; this rank decides by itself now. Call it equally "
    "often on all ranks."
)
_NO_ANSWER = (
    "should_stop() waited long to hear how far the other hosts are; this host decides by itself now, so ranks on "
    "different hosts may leave at different steps."
)
_EACH_HOST = (
    "should_stop() was called on several hosts before there was a process group of PyTorch: each host decides by "
    "itself, so ranks on different hosts may leave at different steps."
)


class AnswerBoard:
    """The place where answers are published: the number of answered calls, and the call of the yes, or -1."""

    def publish(self, answered: int, stop_call: int) -> None:
        """Publish both numbers."""
        raise NotImplementedError

    def look(self) -> tuple[int, int]:
        """Return the numbers that were published last; (0, -1) before."""
        raise NotImplementedError


class FileBoard(AnswerBoard):
    """Answers in a file that all ranks of a node see."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def publish(self, answered: int, stop_call: int) -> None:
        """Write both numbers at once."""
        os.pwrite(self._fd, struct.pack(_FORMAT, answered, stop_call), 0)

    def look(self) -> tuple[int, int]:
        """Read both numbers; nothing is answered before the first write."""
        data = os.pread(self._fd, struct.calcsize(_FORMAT), 0)
        if len(data) < struct.calcsize(_FORMAT):
            return 0, -1
        answered, stop_call = struct.unpack(_FORMAT, data)
        return answered, stop_call


class StoreBoard(AnswerBoard):
    """Answers in the store of PyTorch's process group."""

    def __init__(self, store: object) -> None:
        self._store = store

    def publish(self, answered: int, stop_call: int) -> None:
        """Set both numbers as one value."""
        self._store.set(_KEY, f"{answered} {stop_call}")  # type: ignore[attr-defined] # a torch Store

    def look(self) -> tuple[int, int]:
        """Ask for the value, and wait until there is one."""
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
        """Return the answer to this rank's next call."""
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
        """Ask no more: if this rank decides, no other rank waits for it any longer."""
        if self._decides:
            with contextlib.suppress(RuntimeError, OSError):  # the store is gone, and so are its readers
                self._board.publish(_ALL_CALLS, self._stop_call)

    def _follow(self, call: int) -> bool:
        """Wait until rank 0 has answered this call; return False when it does not for long."""
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


def make_agreement(directory: str, look: Callable[[], bool], note: Callable[[str, str], None]) -> StopAgreement:
    """Return the agreement of this rank with the others.

    Args:
        directory: The trial directory.
        look: Whether a stop is asked for.
        note: Tells the user of trouble: level, text.
    """

    def on_alone() -> None:
        note("warning", _ALONE)

    has_several_nodes = os.environ.get("LOCAL_WORLD_SIZE") != os.environ.get("WORLD_SIZE")
    store = _process_group_store() if has_several_nodes else None
    if store is not None:
        return StopAgreement(StoreBoard(store), os.environ.get("RANK") == "0", look, on_alone)
    board = FileBoard(f"{directory}/{wire.CONTROL}/stop-answers")
    decides = os.environ.get("LOCAL_RANK") == "0"
    if has_several_nodes and _agrees(directory):
        return StopAgreement(board, decides, look, on_alone, lambda call: _agree(directory, call, note))
    if has_several_nodes and os.environ.get("RANK") == "0":
        note("warning", _EACH_HOST)
    return StopAgreement(board, decides, look, on_alone)


def _agrees(directory: str) -> bool:
    """Tell whether the supervisors of the nodes agree: those of an elastic trial do not, which may lose one."""
    try:
        trial = fields.mapping(files.read_json(directory, wire.TRIAL_FILE))
    except (OSError, ValueError):
        return False
    return "layout" in trial and trial.get("elastic") is not True


def _agree(directory: str, call: int, note: Callable[[str, str], None]) -> int:
    """Tell the supervisor how far this node is, and wait for the call at which all nodes stop."""
    deadline = time.monotonic() + _LONGEST_AGREEMENT_S
    agreed = f"{directory}/{wire.STOP_AT_FILE}"
    try:
        wire.write_atomically(f"{directory}/{wire.STOP_REACHED_FILE}", str(call).encode(), sync=False)
        while time.monotonic() < deadline:
            with contextlib.suppress(FileNotFoundError), open(agreed, encoding="ascii") as file:
                return max(call, int(file.read()))
            time.sleep(_AGREEMENT_PAUSE_S)
    except (OSError, ValueError):
        pass  # a full disk, or a directory that is gone
    note("warning", _NO_ANSWER)
    return call


def _process_group_store() -> object | None:
    """Return the store of PyTorch's process group; None where there is no group."""
    import sys  # noqa: PLC0415 - only trials with several ranks pay

    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    try:
        store: object = distributed.distributed_c10d._get_default_store()  # noqa: SLF001 - there is no public way
    except (AttributeError, RuntimeError, ValueError):
        return None
    return store

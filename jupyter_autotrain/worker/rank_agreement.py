"""How the ranks of a trial agree on `should_stop()`; see `stop_agreement`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence

from jupyter_autotrain.core import files, wire
from jupyter_autotrain.worker import fields
from jupyter_autotrain.worker.stop_agreement import FileBoard, StopAgreement, StoreBoard, process_group_store

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

_LONGEST_WAIT_S = 20.0  # less than the ranks of a host wait for their first one
_PAUSE_S = 0.02


def make_agreement(directory: str, look: Callable[[], bool], note: Callable[[str, str], None]) -> StopAgreement:
    """The agreement of this rank with the others.

    Args:
        directory: The trial directory.
        look: Whether a stop is asked for.
        note: Tells the user of trouble: level, text.
    """

    def on_alone() -> None:
        note("warning", _ALONE)

    has_several_nodes = os.environ.get("LOCAL_WORLD_SIZE") != os.environ.get("WORLD_SIZE")
    store = process_group_store() if has_several_nodes else None
    if store is not None:
        return StopAgreement(StoreBoard(store), os.environ.get("RANK") == "0", look, on_alone)
    board = FileBoard(f"{directory}/{wire.CONTROL}/stop-answers")
    decides = os.environ.get("LOCAL_RANK") == "0"
    layout = _layout(directory) if has_several_nodes else {}
    if layout.get("agrees_on_stop") is True:
        return StopAgreement(board, decides, look, on_alone, lambda call: _agree(directory, call, note))
    if layout.get("shared_directory"):
        return StopAgreement(board, decides, look, on_alone, lambda call: _agree_by_files(layout, call, note))
    if has_several_nodes and os.environ.get("RANK") == "0":
        note("warning", _EACH_HOST)
    return StopAgreement(board, decides, look, on_alone)


def _layout(directory: str) -> Mapping[str, object]:
    """How the hosts agree: the backend brings together what they say, or they share a directory."""
    try:
        trial = fields.mapping(files.read_json(directory, wire.TRIAL_FILE))
    except (OSError, ValueError):
        return {}
    return fields.mapping(trial.get("layout"))


def _agree(directory: str, call: int, note: Callable[[str, str], None]) -> int:
    """Tell how far this host is, and wait for the call at which all hosts stop."""
    return _wait(f"{directory}/{wire.STOP_REACHED_FILE}", [f"{directory}/{wire.STOP_AT_FILE}"], call, note)


def _agree_by_files(layout: Mapping[str, object], call: int, note: Callable[[str, str], None]) -> int:
    """Tell how far this host is, and wait until all hosts have: they stop at the latest of their calls."""
    reached = f"{layout['shared_directory']}/{wire.STOP_REACHED_FILE}"
    endpoints = layout.get("endpoints")
    count = len(endpoints) if isinstance(endpoints, list) else 1
    return _wait(f"{reached}-{layout.get('node_rank')}", [f"{reached}-{node}" for node in range(count)], call, note)


def _wait(own: str, awaited: Sequence[str], call: int, note: Callable[[str, str], None]) -> int:
    """Write the own call, wait for files with calls; gives the latest."""
    deadline = time.monotonic() + _LONGEST_WAIT_S
    try:
        wire.write_atomically(own, str(call).encode(), sync=False)
        while time.monotonic() < deadline:
            try:
                return max(call, *[_call(path) for path in awaited])
            except FileNotFoundError:
                time.sleep(_PAUSE_S)
                os.scandir(os.path.dirname(own)).close()  # has NFS look again
    except (OSError, ValueError):
        pass  # a full disk, or a directory that is gone
    note("warning", _NO_ANSWER)
    return call


def _call(path: str) -> int:
    with open(path, encoding="ascii") as file:
        return int(file.read())

"""How the ranks of a trial agree on `should_stop()`; see `stop_agreement`."""

from __future__ import annotations

import os
from collections.abc import Callable

from jupyter_autotrain.core import wire
from jupyter_autotrain.worker.stop_agreement import FileBoard, StopAgreement, StoreBoard, process_group_store

_ALONE = (
    "should_stop() waited long for rank 0, which calls it less often; this rank decides by itself now. Call it equally "
    "often on all ranks."
)
_EACH_HOST = (
    "should_stop() was called on several hosts before there was a process group of PyTorch: each host decides by "
    "itself, so ranks on different hosts may leave at different steps."
)


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
    if has_several_nodes and os.environ.get("RANK") == "0":
        note("warning", _EACH_HOST)
    board = FileBoard(f"{directory}/{wire.CONTROL}/stop-answers")
    return StopAgreement(board, os.environ.get("LOCAL_RANK") == "0", look, on_alone)

"""A trial whose pods are made anew while it runs: its directory outlives them, and each new pod goes on there."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping

from jupyter_autotrain.core import wire

ENDED_CODE = 143  # what schedulers take for a pod that ended since it was told to
_STOP_REASON = "The scheduler gives the trial other nodes: save a checkpoint and end; it goes on from there."
_OF_THE_TRIAL = frozenset({"SUCCEEDED", "CANCELLED"})
_LEAST_GRACE_S = 1.0
_LAST_FRAMES_S = 5.0  # of the grace, for what is written last


def begin(trial: dict[str, object], directory: str, node: int, first: str) -> bool:
    """Make the directory of a node ready to go on; nothing where no earlier pod was there.

    The status of the earlier pod is kept under another name, so that a supervisor starts. Ranks of other nodes than the
    first go on from what rank 0 has saved, since their own number may mean another part of the training now.

    Args:
        trial: Its file, to be written; `resume_from` is set.
        directory: Of this node.
        node: Which one this is.
        first: The directory of the first node.

    Returns:
        Whether there was an earlier pod.
    """
    if not os.path.exists(f"{directory}/{wire.STATUS_FILE}") and not _has_checkpoint(first):
        return False
    for name in (wire.STOP_FILE, wire.CANCEL_FILE, wire.LAUNCH_FILE, wire.LAUNCH_ENDED_FILE, wire.LOCK_FILE):
        with contextlib.suppress(OSError):
            os.unlink(f"{directory}/{name}")
    _remove_partials(directory)
    with contextlib.suppress(FileNotFoundError):
        os.replace(f"{directory}/{wire.STATUS_FILE}", f"{directory}/{wire.STATUS_FILE}-{_next_number(directory)}")
    if node:
        shutil.rmtree(f"{directory}/{wire.CHECKPOINTS}", ignore_errors=True)
        os.makedirs(f"{directory}/{wire.CHECKPOINTS}", mode=0o700, exist_ok=True)
    if _has_checkpoint(first):
        trial["resume_from"] = f"{first}/{wire.CHECKPOINTS}"
    return True


def _has_checkpoint(directory: str) -> bool:
    try:
        return bool(os.listdir(f"{directory}/{wire.CHECKPOINTS}"))
    except OSError:
        return False


def _remove_partials(directory: str) -> None:
    """What ranks reported together up to here was reduced; an earlier pod has written its end there."""
    with contextlib.suppress(OSError):
        for name in os.listdir(directory):
            if wire.base_of_stream(name) == wire.PARTIALS:
                os.unlink(f"{directory}/{name}")


def _next_number(directory: str) -> int:
    begin_of_name = f"{wire.STATUS_FILE}-"
    return sum(1 for name in os.listdir(directory) if name.startswith(begin_of_name)) + 1


def ask_to_stop(directory: str) -> None:
    """Turn `should_stop()` of the cell true: it saves a checkpoint and ends itself."""
    with contextlib.suppress(OSError):
        wire.write_atomically(f"{directory}/{wire.STOP_FILE}", _STOP_REASON.encode())


def patience_s(grace_s: float) -> float:
    """How long the cell may take to end itself, before its processes are told to."""
    return max(_LEAST_GRACE_S, grace_s - _LAST_FRAMES_S)


def ends_for_others(status: Mapping[str, object], *, is_told_to_end: bool) -> bool:
    """Whether a pod ends so that others go on with the trial; its final status is none of the trial then."""
    return is_told_to_end and status.get("state") not in _OF_THE_TRIAL


def variables(environ: Mapping[str, str], directory: str, storage: str) -> dict[str, str]:
    """What AdaptDL's own library wants to know of folders, where the cell uses it."""
    if "ADAPTDL_JOB_ID" not in environ:
        return {}
    share = f"{storage}/share"
    with contextlib.suppress(OSError):
        os.makedirs(share, mode=0o700, exist_ok=True)
    return {"ADAPTDL_CHECKPOINT_PATH": f"{directory}/{wire.CHECKPOINTS}", "ADAPTDL_SHARE_PATH": share}


def node_count(environ: Mapping[str, str], variable: str, asked: int) -> int:
    """How many nodes the trial has now; `asked` where no variable says it."""
    text = environ.get(variable, "")
    return int(text) if text.isdigit() else asked

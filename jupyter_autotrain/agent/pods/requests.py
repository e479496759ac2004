"""The requests of the manager to a running pod: one line on standard input, its answer on standard output.

They are `put`, `append`, `list` and `get` of the trial's files, as everywhere, and `run`: the next trial of a
long-running pod.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.agent.service import trial_files
from jupyter_autotrain.agent.service.request_loop import Handlers, Request, RequestLoop

_FILES_OF_THE_POD = frozenset({places.STATES, places.FILES})


def handlers(run: str = places.RUN, *, is_container: bool = True) -> Handlers:
    """Return what answers the requests to a pod.

    Args:
        run: The folder of everything in the pod.
        is_container: Whether the folder is there as long as the pod is; else a request makes none that is gone.
    """
    directory = Path(run, places.TRIAL)
    if is_container:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return {
        **trial_files.handlers(lambda request: Path(run) if request["path"] in _FILES_OF_THE_POD else directory),
        "run": _accept,
    }


def _accept(request: Request) -> None:
    from jupyter_autotrain.agent.pool import waiting  # noqa: PLC0415 - few pods are long-running

    waiting.give(places.RUN, request["job"], json.dumps(request["files"]).encode())


def main() -> None:
    """Answer one request on the standard streams."""
    os.umask(0o077)
    RequestLoop(sys.stdout.buffer).answer(sys.stdin.buffer.readline(), handlers())

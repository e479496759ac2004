"""The supervisor of every other backend, as a child of the pod's program. Runs in the pod, with Python 3.9."""

from __future__ import annotations

import os
import signal
import traceback

from jupyter_autotrain.worker import supervisor_main, trial_lock


def start(trial: dict[str, object], directory: str, environ: dict[str, str]) -> int:
    """Start it; gives its pid.

    Args:
        trial: What `trial.json` says.
        directory: The trial directory.
        environ: The variables of the trial, with its secrets.
    """
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setsid()
        os.chdir(directory)
        lock = trial_lock.acquire()
        if lock is not None:  # else an earlier container of this pod has run it
            supervisor_main.supervise(trial, environ, lock)
    except BaseException:  # noqa: BLE001 - the log of the pod says it, whatever it is
        traceback.print_exc()
    finally:
        os._exit(0)

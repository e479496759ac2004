"""A pilot job of Slurm: it runs the trials of its pool on its node, each under its own supervisor; see `agent.pool`.

```
pools/DIGEST/waiting/NAME        a trial that may be taken: {"batch", "index", "timeout_s", "most"}
             pilots/ID/script    what `sbatch` gets
                       tried     there when `sbatch` was called
                       job       the number that Slurm gave it
                       lock      there when it has begun, locked while it lives
                       output-0  what its script printed
                       taken-NAME, ran
                       ended     how Slurm says that it ended, written by the login node
```

A pilot that ends by itself leaves no trial and removes its folder; one that is ended leaves the entry of its trial, and
the login node settles what becomes of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time

from jupyter_autotrain.agent import fields, files, wire
from jupyter_autotrain.agent.pool.pilot import Entry, Pilot, leave
from jupyter_autotrain.agent.pool.waiting import WaitingTrials
from jupyter_autotrain.agent.slurm.slurm_task import SlurmTask
from jupyter_autotrain.agent.trial import trial_lock

JOB = "job"


def _run_trial(_name: str, entry: Entry, how: str) -> None:
    """Supervise a trial to its end; where its supervisor ended before, write the end that this could not."""
    task = SlurmTask(str(entry["batch"]), dict(os.environ), fields.integer(entry.get("index"), 0))
    if not how:
        task.supervise()
        return
    found: dict[str, object] = {}
    with contextlib.suppress(OSError, ValueError):
        found = dict(fields.mapping(files.read_json(task.directory, wire.STATUS_FILE)))
    if found.get("ended_s") or trial_lock.is_held(task.directory):
        return
    reason = f"Lost: its supervisor ended ({how}) before the trial did. `%autotrain retry` submits it again."
    nobody = {"supervisor": [0, 0.0, ""], **found}
    last = {**nobody, "state": "LOST", "reason": reason, "ended_s": time.time(), "groups": []}
    wire.write_atomically(f"{task.directory}/{wire.STATUS_FILE}", json.dumps(last).encode())


def main(folder: str, idle_s: float, limit_s: float) -> None:
    """Be the pilot of a folder to its end.

    Args:
        folder: Its folder.
        idle_s: How long it waits for another trial.
        limit_s: Its time limit, where Slurm does not tell when it ends.
    """
    os.umask(0o077)
    os.chdir(folder)
    if trial_lock.acquire() is None:  # kept open: it ends with this process
        sys.exit(0)
    wire.write_atomically(JOB, os.environ["SLURM_JOB_ID"].encode(), sync=False)
    end = os.environ.get("SLURM_JOB_END_TIME", "")
    end_s = float(end) if end.isdigit() else time.time() + limit_s
    waiting = WaitingTrials(os.path.dirname(os.path.dirname(os.getcwd())))
    Pilot(waiting, os.getcwd(), _run_trial, idle_s=idle_s, end_s=end_s).run()
    leave(os.getcwd())

"""The program of a job at a training service: a trial where there may be no container of its own.

Its package lies in one folder, as the service has unpacked it: the agent and archives. `trial.json`, where that stands
in no variable, and `secrets.json` with the values of secrets, which is removed before the trial begins, lie there too,
or in a folder that the job shares with its manager. All that the job makes lies in a folder of its own, which is
removed at its end. Of a trial on several nodes each worker of the job is one: it has `secrets-N.json`, and `node-N` in
the shared folder.

A manager asks a running trial for its files by another job beside it, or in the folder that both share:

```
SHARED/requests/NAME.json    a request, as `agent.pods.requests` takes it
SHARED/answers/NAME.json     its answer
SHARED/log                   what the job prints, at services that give no log of their own
```

A *pilot* is a job that runs the trials of a pool; see `agent.pool`. An entry says where the package of its trial lies;
SHARED of a trial is beside that of its pilot, has its log, and `begun/PILOT` from its beginning on.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Mapping

from jupyter_autotrain.agent import durable, fields, files, system, wire
from jupyter_autotrain.agent.pods import places, rendezvous, requests
from jupyter_autotrain.agent.pods.pod import PREEMPTED_CODE, Pod
from jupyter_autotrain.agent.pool.pilot import Entry, Pilot
from jupyter_autotrain.agent.pool.waiting import WaitingTrials
from jupyter_autotrain.agent.service.request_loop import RequestLoop

REQUESTS = "requests"
ANSWERS = "answers"
LOG = "log"
BEGUN = "begun"
POOL = "pool"  # of what stands in the variable of the job of a pilot: where its trials wait, in the storage
OWN_LOGS = "own_logs"  # as POOL: whether each trial has a log there; else that of the pilot is theirs
ENTRY_END = "."  # before the name of a trial in that of its entry
_LOOK_AGAIN_S = 0.1
_SEND_LOG_TICKS = 10
REQUEST_VARIABLE = "AUTOTRAIN_REQUEST"


def of_node(node: int, nodes: int) -> str:
    """Return the end of the names of what one of several nodes has for itself; "" where there is one node."""
    return f"-{node}" if nodes > 1 else ""


def run(environ: Mapping[str, str], folder: str, code: str, shared: str = "") -> int:
    """Run the trial, or those of a pool; return the exit code of the job.

    Args:
        environ: The variables of the job.
        folder: Of all that the job makes.
        code: Where its package lies.
        shared: A folder that it shares with its manager; "" where there is none.
    """
    options = fields.mapping(json.loads(environ.get(places.POD_VARIABLE) or "{}"))
    if options.get(POOL):
        return _run_pool(environ, options, folder, shared)
    return _run_trial(environ, folder, code, shared)


def _run_pool(environ: Mapping[str, str], options: Mapping[str, object], folder: str, shared: str) -> int:
    """Run trials until none comes; return the exit code of the job."""
    jobs, own_name = os.path.split(shared)
    root = os.path.dirname(jobs)
    own = {**environ, places.POD_VARIABLE: json.dumps({**options, POOL: ""})}

    def run_trial(name: str, entry: Entry, how: str) -> None:
        name = name.partition(ENTRY_END)[2]
        of_trial = f"{jobs}/{name}"
        begun = f"{of_trial}/{BEGUN}"
        umask = os.umask(0)  # the manager, which may be another user, removes all of it
        if not how:
            os.mkdir(begun)  # fails where another pilot has begun it
            wire.write_atomically(f"{begun}/{own_name}", b"", sync=False)
        elif not os.path.exists(f"{begun}/{own_name}"):
            return
        if options.get(OWN_LOGS):
            log = os.open(f"{of_trial}/{LOG}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            for stream in (1, 2):
                os.dup2(log, stream)
        else:
            own[places.JOB_VARIABLE] = name
        os.umask(umask)
        path = f"{os.path.dirname(folder)}/{name}"
        _run_trial(own, path, f"{root}/{entry['code']}", of_trial, goes_on=bool(how))

    waiting = WaitingTrials(f"{root}/{options[POOL]}")
    idle_s = options.get(places.REUSE_IDLE)
    pilot = Pilot(waiting, shared, run_trial, idle_s=float(idle_s) if isinstance(idle_s, (int, float)) else 0.0)
    is_done = pilot.run()
    shutil.rmtree(folder, ignore_errors=True)
    return 0 if is_done else PREEMPTED_CODE


def _run_trial(environ: Mapping[str, str], folder: str, code: str, shared: str, *, goes_on: bool = False) -> int:
    own_folder = shared or code
    text = environ.get(places.TRIAL_VARIABLE)
    trial = fields.mapping(json.loads(text) if text else files.read_json(own_folder, places.TRIAL_FILE))
    options = fields.mapping(json.loads(environ.get(places.POD_VARIABLE) or "{}"))
    which = (rendezvous.node_of(options, environ), fields.integer(options.get("nodes"), 1))
    if shared and which[1] > 1:
        shared += f"/node{of_node(*which)}"
    trial["archives"] = archives = list(map(fields.mapping, fields.sequence(trial.get("archives"))))
    for archive in archives:
        if archive.get("path"):
            archive["path"] = f"{code}/{os.path.basename(str(archive['path']))}"
    secrets = _secrets(own_folder, f"secrets{of_node(*which)}.json")
    own = {**environ, places.TRIAL_VARIABLE: json.dumps(trial), **secrets}
    answering = _start_answering(folder, shared) if shared else None
    try:
        return Pod(own, folder, code, goes_on=goes_on).main()
    finally:
        if answering is not None:
            os.kill(answering, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


def _start_answering(folder: str, shared: str) -> int:
    """Start the process that answers requests in a shared folder; return its pid."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends with the job alone
        system.die_with_parent(parent)
        answer_all(folder, shared)
    finally:
        os._exit(0)


def answer_all(folder: str, shared: str) -> None:
    """Answer requests in a shared folder until this process is killed.

    Once the manager has removed the folder, all is collected: a job that waits for that may end.

    Args:
        folder: Of all that the job makes.
        shared: The folder that the job shares with its manager.
    """
    released = f"{folder}/{places.RELEASED}"
    for tick in itertools.count():
        with contextlib.suppress(OSError):
            if os.path.isdir(shared) == os.path.exists(released):
                _note(released, is_gone=not os.path.isdir(shared))
            for name in sorted(os.listdir(f"{shared}/{REQUESTS}")):
                _answer_file(folder, shared, name)
        if tick % _SEND_LOG_TICKS == 0:
            _send_log(f"{shared}/{LOG}")
        time.sleep(_LOOK_AGAIN_S)


def _send_log(path: str) -> None:
    """Have what the job has printed go to the server: an NFS client keeps it for half a minute."""
    with contextlib.suppress(OSError):
        durable.sync_path(path)


def _note(released: str, *, is_gone: bool) -> None:
    """Note that the shared folder is gone, or is there again: a mount may be away for a while."""
    if is_gone:
        wire.write_atomically(released, b"", sync=False)
    else:
        os.unlink(released)


def _answer_file(folder: str, shared: str, name: str) -> None:
    if not name.endswith(".json"):
        return  # it is being written
    with open(f"{shared}/{REQUESTS}/{name}", "rb") as file:
        request = file.read()
    output = io.BytesIO()
    RequestLoop(output).answer(request, requests.handlers(folder, is_container=False))
    wire.write_atomically(f"{shared}/{ANSWERS}/{name}", output.getvalue(), sync=False)
    os.unlink(f"{shared}/{REQUESTS}/{name}")


def _secrets(folder: str, name: str) -> dict[str, str]:
    """Return the values of the trial's secrets, which are not kept."""
    try:
        found = fields.mapping(files.read_json(folder, name))
    except OSError:
        return {}
    with contextlib.suppress(OSError):
        os.unlink(f"{folder}/{name}")
    return {name: str(value) for name, value in found.items()}


def answer(environ: Mapping[str, str], folder: str) -> None:
    """Answer one request about the files of a running job, on standard output.

    Args:
        environ: With the request, in `REQUEST_VARIABLE`.
        folder: Of all that the job makes.
    """
    RequestLoop(sys.stdout.buffer).answer(
        environ[REQUEST_VARIABLE].encode(), requests.handlers(folder, is_container=False)
    )

"""The trial directory and the frames inside it: all that manager and worker share.

This module is imported by every worker, so it uses only the cheapest parts of the standard library.

A trial directory:

```
trial.json    what to run (`TrialSpec` as JSON, with the paths and devices that its backend gives it: "directory",
              "bundle", "python", "environments": the folder of virtual ones, "gpus", "resume_from";
              how many processes run here: "workers"; on several nodes
              "layout", see `trial.trial_file`; and "wire": VERSION),
              written by the backend's `submit`
status.json   the state of the trial (written atomically by the supervisor, see below)
lock          locked (flock) by the living supervisor, so that a trial is started once; holds
              {"supervisor": identity, "groups": [cgroup folders]}
stdout        bytes as printed
stderr        bytes as printed
metrics       one frame per line, see below
usage         what the trial uses on this node, a line each time it is looked at, see below
debug         what the debugger of a rank has printed, where one was opened; see `agent.ranks.debugger`
stacks        where the worker's threads stand, as often as it was asked; see `agent.trial.stacks`
launcher      what a launcher prints that starts the workers (torchrun, mpiexec), where there is one
rounds        of a client of a federated training, a line of JSON for each message: {"hello": its public key, or ""},
              {"order": id, "file", "sha256", "size", "samples", "metrics"}
control/      files put by the backend: `stop` asks the trial to end itself (`should_stop()` turns true; the text of
              the file is the reason), `cancel` asks the supervisor to end it (JSON: grace_s, reason). On several nodes
              `stop-reached`: how many calls of `should_stop()` the ranks here have answered when they saw the stop, and
              `stop-at`: the call at which all nodes stop; `launch-ADDRESS`: what mpiexec on the first node wants to be
              run on that one, `launch-ended`: that has ended everywhere. `stacks`: the supervisor takes the stacks of
              its ranks; the text of the file comes back with them. `debug-RANK-...`: a command for the debugger of a
              rank; `stopped-RANK`: made by a rank that stands in its debugger. `noted-CHECKSUM`: made by the trial's
              process that was the first to send that note. `round`: the order that the client of a federated training
              carries out next (JSON: id, kind, round, rounds, file, sha256, config). `gpus`: the number of the last
              turn of a session at its GPUs
checkpoints/  what `checkpoint` saved
updates/      the weights that a federated training's client sends, by the id of the order
outputs/      what `returns:` names, pickled, one file each; `pictures/`: what it displayed; whatever it writes there
work/         the worker's current directory: links to the shipped files, copies of those that the cell may write to
```

Of several workers rank 0 writes `stdout`, `stderr`, `metrics` and `stacks`, and rank K `stdout-K` and so on; so the
metrics of the trial are those of rank 0. All other files are shared. On several nodes each has a directory with the
files of its own ranks.

When the trial has ended only `status.json`, `metrics`, `usage`, what was printed, and what the trial itself wrote are
left.

A line of `metrics` is JSON: `["m", step, time_s, {name: value, ...}]` with value null for NaN,
or `["n", time_s, level, text]` for a note to the user (level: info, warning, error, or picture: then the text
is its path in `outputs/`, or plan: then it is a `Measurement` of `core` as JSON), with a fifth element when it is sent
again: how often it holds by now.
A session that holds its GPUs only while a cell runs writes `["g", turn, wanted]`: it wants them for a turn, or they
are free after it.
Of several workers each may write `["r", step, time_s, {name: value, ...}, "mean"]` (or sum, min, max): the supervisor
of rank 0 writes the "m" of all ranks together (`supervisor.reduction`).
The first line is `["v", VERSION]`. A reader takes whole lines and passes over a line that is not JSON
(the rest of a write that a full disk cut short).

A line of `usage` is `[seconds, cpu_percent, memory_bytes, gpu_percent, gpu_memory_bytes]`: when, counted from the
supervisor's start (a restarted one counts anew); the CPU time used since the line before, 100 being one CPU; the memory
of its processes; how busy its GPUs were on average, and their memory in use, both null where that is not known.

`status.json`: `{"wire": 1, "state": TrialState, "reason": str, "exit_code": int|null, "signal": int|null,
"supervisor": identity, "worker": identity|null, "started_s": float, "ended_s": float|null,
"peak_memory_bytes": int|null, "limits": str, "groups": [cgroup folders], "traceback": str, "cell_line": str,
"kind": str, "failed_s": float, "receipt": {"ended": [pid], "killed": [pid], "left": [pid], "elapsed_s": float},
"workers": [{"rank": int, "process": identity|null, "exit_code": int|null, "signal": int|null}]}`.
`failed_s` is when the worker ended that the reason names, or the supervisor was told to end, by the wall clock.
`workers` is there only where there are several; then `worker` is that of rank 0, and exit code and signal are those of
the worker that the reason names.
An identity is `[pid, create_time_s, boot_id]`; `create_time_s` counts from the machine's boot, so that a clock that is
set back cannot confuse it. `kind` is one of "" (none of these), start, environment, exit, exception, import, memory,
and objective where the objective was never reported.
"""

from __future__ import annotations

import os
from _thread import get_ident  # threading would cost every worker its import

from jupyter_autotrain.agent import durable

VERSION = 1
TRIAL_FILE = "trial.json"
STATUS_FILE = "status.json"
STDOUT = "stdout"
STDERR = "stderr"
METRICS = "metrics"
USAGE = "usage"
LAUNCHER_LOG = "launcher"
ROUNDS = "rounds"
STACKS = "stacks"
DEBUG = "debug"
LONGEST_NAME = 1000  # of a metric, in characters
STREAMS = (STDOUT, STDERR, METRICS)
LOCK_FILE = "lock"
STOP_FILE = "control/stop"
STOP_REACHED_FILE = "control/stop-reached"
STOP_AT_FILE = "control/stop-at"
CANCEL_FILE = "control/cancel"
STACKS_FILE = "control/stacks"
GPUS_FILE = "control/gpus"
STOPPED = "control/stopped-"
LAUNCH_FILE = "control/launch"
LAUNCH_ENDED_FILE = "control/launch-ended"
NOTED = "control/noted-"
CHECKPOINTS = "checkpoints"
DRAFT = ".draft"  # ends the name of a file that is being written
OUTPUTS = "outputs"
ELSEWHERE_FILE = "elsewhere.json"  # in the home's copy only: {path: size} of files that are still where the trial ran
KEPT_FILE = "kept.json"  # in the home's copy only: `KeptCheckpoints`, those that only the trial's place has
CONTROL = "control"
ROUND_FILE = "control/round"
UPDATES = "updates"
WORK = "work"
FOLDERS = (CHECKPOINTS, OUTPUTS, CONTROL, WORK)
TOKEN_VARIABLE = "AUTOTRAIN_TOKEN"  # noqa: S105 - its name: of the supervisors of a trial's nodes, which know each other by it
TRIAL_VARIABLE = "JUPYTER_AUTOTRAIN_TRIAL"  # in the environment of all of a trial's processes: the trial directory
RANK_VARIABLE = "JUPYTER_AUTOTRAIN_RANK"  # besides, where a trial has several workers: the worker's rank
# In the environment of a manager and of its supervisors: the directory of the trial that started that manager, or "".
MANAGER_VARIABLE = "JUPYTER_AUTOTRAIN_MANAGER"

_DRAFT_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def stream_of_rank(stream: str, rank: int) -> str:
    """Return the file of a worker's stream: rank 0 has the plain name."""
    return f"{stream}-{rank}" if rank else stream


def base_of_stream(name: str) -> str:
    """Return the stream that a worker's file belongs to: `stdout` for `stdout-3`.

    The name itself is returned where it is of no worker.
    """
    base, dash, rank = name.partition("-")
    return base if not dash or rank.isdigit() else name


def write_atomically(path: str, data: bytes, *, sync: bool = True) -> None:
    """Replace a file so that a reader sees the old or the new content, never a part; mode 0600."""
    draft = f"{path}.{os.getpid()}.{get_ident()}{DRAFT}"
    fd = os.open(draft, _DRAFT_FLAGS, 0o600)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            if sync:
                durable.sync(fd)
        finally:
            os.close(fd)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise

"""The trial directory and the frames inside it: all that manager and worker share.

This module is imported by every worker, also where nothing else of this package is, so it uses only the
cheapest parts of the standard library.

A trial directory:

```
trial.json    what to run (written by the manager: `TrialSpec` as JSON, plus "wire": VERSION)
status.json   what became of it (written atomically by the supervisor, see below)
stdout        bytes as printed
stderr        bytes as printed
metrics       one frame per line, see below
control/      files put by the manager: `stop` asks the trial to end itself (`should_stop()` turns true)
checkpoints/  what `checkpoint` saved
outputs/      what `returns:` names, pickled, one file each; and whatever the trial writes there
```

A line of `metrics` is JSON: `["m", step, time_s, {name: value, ...}]` with value null for NaN,
or `["n", time_s, level, text]` for a note to the user (level: info, warning, error).
The first line is `["v", VERSION]`.

`status.json`: `{"wire": 1, "state": TrialState, "reason": str, "exit_code": int|null, "signal": int|null,
"supervisor": identity, "worker": identity, "started_s": float, "ended_s": float|null,
"peak_memory_bytes": int|null, "limits": str, "traceback": str, "cell_line": str}`;
an identity is `[pid, create_time_s, boot_id]`.
"""

from __future__ import annotations

import os

VERSION = 1
TRIAL_FILE = "trial.json"
STATUS_FILE = "status.json"
STDOUT, STDERR, METRICS = "stdout", "stderr", "metrics"
STREAMS = (STDOUT, STDERR, METRICS)
STOP_FILE = "control/stop"
CHECKPOINTS, OUTPUTS, CONTROL = "checkpoints", "outputs", "control"
SUPERVISOR_MODULE = "jupyter_autotrain.worker.supervisor"


def write_atomically(path: str, data: bytes, *, sync: bool = True) -> None:
    """Replace a file so that a reader sees the old or the new content, never a part; mode 0600."""
    draft = f"{path}.{os.getpid()}.draft"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        if sync:
            os.fsync(fd)
    except BaseException:
        os.close(fd)
        os.unlink(draft)  # noqa: PTH108 - pathlib would cost every worker its import
        raise
    os.close(fd)
    os.replace(draft, path)  # noqa: PTH105 - pathlib would cost every worker its import

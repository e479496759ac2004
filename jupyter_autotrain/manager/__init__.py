"""The one process per home that owns experiments: `start` → `event_loop` → `manager` → `jobs.watcher` → store.

`ensure` starts it when none runs, `notify` wakes it, `explain` tells what each trial waits for, `status` whether it
runs, `is_missing` whether nobody serves the home, `stopped_by_signal` whether a signal holds it, `stopped` ends it for
as long as its store is repaired. It listens on no port.
"""

from jupyter_autotrain.manager.contact import notify
from jupyter_autotrain.manager.reasons import explain
from jupyter_autotrain.manager.start import ManagerStatus, ensure, is_missing, status, stopped, stopped_by_signal

__all__ = ["ManagerStatus", "ensure", "explain", "is_missing", "notify", "status", "stopped", "stopped_by_signal"]

"""The one process per home that owns experiments: `start` → `event_loop` → `manager` → `job_watcher` → store.

`ensure` starts it when none lives, `notify` wakes it, `explain` says what each trial waits for, `status` whether it
lives, `stopped` ends it for as long as its store is repaired.
It listens on no port.
"""

from jupyter_autotrain.manager.explain import explain
from jupyter_autotrain.manager.start import Status, ensure, status, stopped
from jupyter_autotrain.manager.wakeup_socket import notify

__all__ = ["Status", "ensure", "explain", "notify", "status", "stopped"]

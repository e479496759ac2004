"""The one process per home that owns experiments: `start` → `event_loop` → `manager` → `job_watcher` → store.

`ensure` starts it when none lives, `ring` wakes it, `why` says what each trial waits for, `status` whether it lives,
`kept_away` ends it for as long as its store is repaired.
It listens on no port.
"""

from jupyter_autotrain.manager.doorbell import ring
from jupyter_autotrain.manager.start import Status, ensure, kept_away, status
from jupyter_autotrain.manager.why import why

__all__ = ["Status", "ensure", "kept_away", "ring", "status", "why"]

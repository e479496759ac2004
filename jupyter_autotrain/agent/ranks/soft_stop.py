"""The SIGTERM of a trial that looks at `should_stop()`: once it is asked to stop early it ends itself, in its own time.

A trial that never looks is ended at once by the same signal.
"""

from __future__ import annotations

import os
import signal
import threading


def prepare(stop_file: str) -> None:
    """Let this process outlive a SIGTERM while `stop_file` is there; a handler of the cell's own stays.

    Whoever sends the signal kills the process when its grace is over. Processes that this one forks end at once.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        return
    me = os.getpid()

    def end_unless_stopping(number: int, _: object) -> None:
        if os.getpid() == me and os.path.exists(stop_file):
            return
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, end_unless_stopping)

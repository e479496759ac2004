"""The entry point of a worker: it runs the cell and tells its supervisor how that ended."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence

from jupyter_autotrain.worker import api, outcome
from jupyter_autotrain.worker.cell_runner import CellRunner
from jupyter_autotrain.worker.work_folder import enter_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

_SHOW_PICTURES = frozenset({"matplotlib.pyplot", "IPython.core.display_functions"})


def main(directory: str, channel: int) -> None:
    """Run the trial in `directory`; ends the process. Its outcome goes into `channel`; see `worker.outcome`."""
    outcome.write_started(channel)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    context = api.load(directory)
    me = os.getpid()
    enter_work(directory, str(context.trial["bundle"]))
    sys.meta_path.insert(0, DisplayFinder(context.display))
    runner = CellRunner(context)
    ended, code = runner.run()
    if os.getpid() != me:
        sys.exit(code)  # a child that the cell has forked: its end is not the trial's
    context.leave()
    losses = [*runner.losses, *_lost(context.reporter.lost)]
    ended["reason"] = ended["reason"] or " ".join(losses)
    outcome.write(channel, {key: context.redact(value) for key, value in ended.items()})
    if "torch.distributed" in sys.modules or "mpi4py" in sys.modules:
        from jupyter_autotrain.worker.finalizing import finalize  # noqa: PLC0415 - only trials with these pay

        finalize(code)
    if code:
        sys.exit(code)


class DisplayFinder:
    """Sees the imports of what a cell shows pictures with, before they happen; nothing is loaded until then.

    Args:
        display: What `IPython.display.display` becomes.
    """

    def __init__(self, display: Callable[..., object]) -> None:
        self._display = display

    def find_spec(self, name: str, path: Sequence[str] | None = None, _target: object = None) -> ModuleSpec | None:
        """Called by Python for each import; None leaves it to the other finders."""
        if name not in _SHOW_PICTURES:
            return None
        from jupyter_autotrain.worker.import_hooks import patched_spec  # noqa: PLC0415 - only trials that show something pay

        return patched_spec(name, path, self._display)


def _lost(reports: str) -> list[str]:
    """What did not reach the disk, one sentence each; `reports` says why the last report that was lost was."""
    losses = [f"Some reports were lost: {reports}."] if reports else []
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            losses.append(f"The end of its output was lost: {error.strerror}.")
        except ValueError:
            continue  # the cell has closed it
    return losses

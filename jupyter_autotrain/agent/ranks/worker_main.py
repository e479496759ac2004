"""The entry point of a worker: it runs the cell and tells its supervisor how that ended.

At the cell's end it leaves the groups of distributed libraries, so that the process ends, and ends as the cell did.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Sequence

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.ranks import api, autolog
from jupyter_autotrain.agent.ranks.cell_runner import CellRunner, enter_work
from jupyter_autotrain.agent.ranks.stand_ins import StandInFinder
from jupyter_autotrain.agent.trial import outcome, stacks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

_SHOW_PICTURES = frozenset({"matplotlib.pyplot", "IPython.core.display_functions"})
_LONGEST_S = 10.0


def main(directory: str, channel: int) -> None:
    """Run the trial in `directory`, then end the process.

    Its outcome goes into `channel`; see `agent.trial.outcome`.
    """
    outcome.write_started(channel)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    context = api.load(directory)
    stacks.answer_requests(f"{directory}/{wire.stream_of_rank(wire.STACKS, context.worker)}")
    me = os.getpid()
    enter_work(directory, str(context.trial["bundle"]))
    sys.meta_path.insert(0, DisplayFinder(context.display))
    sys.meta_path.append(StandInFinder())
    autolog.begin(context)
    if "PYTHONBREAKPOINT" not in os.environ:
        sys.breakpointhook = Breakpoint(context)
    runner = CellRunner(context)
    ended, code = runner.run()
    if os.getpid() != me:
        sys.exit(code)  # a child that the cell has forked: its end is not the trial's
    context.leave()
    losses = [*runner.losses, *_lost(context.reporter.lost)]
    ended["reason"] = ended["reason"] or " ".join(losses)
    outcome.write(channel, {key: context.redact(value) for key, value in ended.items()})
    if "torch.distributed" in sys.modules or "mpi4py" in sys.modules:
        finalize(code)
    if code:
        sys.exit(code)


class Breakpoint:
    """The `breakpoint()` of a rank: it stops until the user opens the rank; in its child processes what it did."""

    def __init__(self, context: api.TrialContext) -> None:
        self._context = context
        self._me = os.getpid()

    def __call__(self, *args: object, **options: object) -> object:
        """Stop before the next line of the caller."""
        if os.getpid() != self._me:
            return sys.__breakpointhook__(*args, **options)
        self._context.debugging.stop_at(sys._getframe(1))  # noqa: SLF001 - as the standard hook does
        return None


class DisplayFinder:
    """A finder that sees the imports of picture libraries in a cell before they happen; it loads nothing until then.

    Args:
        display: What `IPython.display.display` becomes.
    """

    def __init__(self, display: Callable[..., object]) -> None:
        self._display = display

    def find_spec(self, name: str, path: Sequence[str] | None = None, _target: object = None) -> ModuleSpec | None:
        """Answer Python, which asks for each import; None leaves the import to the other finders."""
        if name not in _SHOW_PICTURES:
            return None
        from jupyter_autotrain.agent.ranks.library_hooks import patched_spec  # noqa: PLC0415 - only trials that show something pay

        return patched_spec(name, path, self._display)


def _lost(reports: str) -> list[str]:
    """Return a sentence for each loss of data on its way to the disk.

    `reports` is the reason for the last loss of a report, or "".
    """
    losses = [f"Some reports were lost: {reports}."] if reports else []
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            losses.append(f"The end of its output was lost: {error.strerror}.")
        except ValueError:
            continue  # the cell has closed it
    return losses


def finalize(code: int) -> None:
    """Leave the process group of PyTorch, and MPI where the cell has failed.

    A process that exits inside of a group is aborted, and an elastic agent would then repeat a finished trial. A rank
    that ends by an exception would wait for all others in `MPI_Finalize`: it exits without it.

    Args:
        code: The exit code of the process.
    """
    torch = sys.modules.get("torch.distributed")
    if torch is not None and _is_in_group(torch):
        _leave_group(torch)
    if code and "mpi4py.MPI" in sys.modules:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _leave_group(distributed: object) -> None:
    """Leave the process group, in bounded time: a rank that has failed may wait for others that never come."""
    import threading  # noqa: PLC0415 - torch has imported it

    thread = threading.Thread(target=_destroy, args=(distributed,), daemon=True)
    thread.start()
    thread.join(_LONGEST_S)


def _is_in_group(distributed: object) -> bool:
    with contextlib.suppress(Exception):  # whatever the library raises, the cell's outcome is known
        return bool(distributed.is_available() and distributed.is_initialized())  # type: ignore[attr-defined] # torch's
    return False


def _destroy(distributed: object) -> None:
    with contextlib.suppress(Exception):  # as above
        distributed.destroy_process_group()  # type: ignore[attr-defined] # as above

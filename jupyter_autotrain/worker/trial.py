"""The worker: executes the cell's script as `__main__`, with the names a cell may use, and says how it ended."""

from __future__ import annotations

import builtins
import contextlib
import os
import signal
import stat
import sys
import types
from collections.abc import Callable, Mapping, Sequence

from jupyter_autotrain.core import wire
from jupyter_autotrain.worker import api, outcome, spawned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

_SHOW_PICTURES = frozenset({"matplotlib.pyplot", "IPython.core.display_functions"})
_TOP_LEVEL_AWAIT = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, without the cost of `ast`


def main(directory: str, channel: int) -> None:
    """Run the trial in `directory`; ends the process. Its end is told through `channel`; see `worker.outcome`."""
    outcome.begin(channel)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    context = api.of(directory)
    me = os.getpid()
    enter_work(directory, str(context.trial["bundle"]))
    sys.meta_path.insert(0, DisplayFinder(context.display))
    run = Run(context)
    ended, code = run.run()
    if os.getpid() != me:
        sys.exit(code)  # a child that the cell has forked and let run on: not the one to say how the trial ended
    losses = [*run.losses, *_lost(context.reporter.lost)]
    ended["reason"] = ended["reason"] or " ".join(losses)
    outcome.tell(channel, {key: context.redact(value) for key, value in ended.items()})
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
        from jupyter_autotrain.worker.imports import prepared  # noqa: PLC0415 - only trials that show something pay

        return prepared(name, path, self._display)


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


def enter_work(directory: str, bundle: str) -> None:
    """Go to `work/`, where the shipped files are linked in, and import from there first."""
    work = f"{directory}/{wire.WORK}"
    os.makedirs(work, mode=0o700, exist_ok=True)
    _link(f"{bundle}/files", work)
    os.chdir(work)
    sys.path.insert(0, work)


def _link(source: str, target: str) -> None:
    """Mirror a folder: real folders, so that a trial can write into them, links to files, and copies of some.

    The bundle keeps files read-only that the cell only reads; another trial of it must not find the others changed.
    """
    if not os.path.isdir(source):
        return
    for entry in os.scandir(source):
        there = f"{target}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            os.makedirs(there, mode=0o700, exist_ok=True)
            _link(entry.path, there)
        elif os.path.lexists(there):
            continue
        elif entry.stat().st_mode & stat.S_IWUSR:
            _copy(entry.path, there)
        else:
            os.symlink(entry.path, there)


def _copy(source: str, target: str) -> None:
    """Copy a file, its time too, unless another worker of the trial has done so."""
    import shutil  # noqa: PLC0415 - only trials that write to shipped files pay

    draft = f"{target}.{os.getpid()}.draft"
    shutil.copy2(source, draft)
    with contextlib.suppress(FileExistsError):
        os.link(draft, target)
    os.unlink(draft)


class Run:
    """One execution of a cell.

    Args:
        context: The trial.
    """

    def __init__(self, context: api.Context) -> None:
        self.context = context
        self.directory = context.directory
        self.trial = context.trial
        self.bundle = str(self.trial["bundle"])
        self.script = context.script
        self.losses: list[str] = []

    def run(self) -> tuple[dict[str, str], int]:
        """Execute the cell; gives what `outcome.tell` takes, and the process's exit code."""
        try:
            return self._run()
        finally:
            self.context.reporter.refusals.finish()

    def _run(self) -> tuple[dict[str, str], int]:
        if isinstance(seed := self.trial.get("seed"), int):
            from jupyter_autotrain.core.seeds import seed_everything  # noqa: PLC0415 - only trials with a seed pay

            seed_everything(seed)
        try:
            names = self._execute()
        except SystemExit as error:
            return self._left(error)
        except KeyboardInterrupt as error:
            return self._failed(error)
        except BaseException as error:  # noqa: BLE001 - whatever ends the cell is its outcome
            return self._failed(error)
        self._save_returns(names)
        self._show_open_figures()
        return self._ended()

    def _show_open_figures(self) -> None:
        """As a notebook does at the end of a cell."""
        figures = sys.modules.get("jupyter_autotrain.worker.figures")
        if figures is not None:
            figures.FigureManager.pyplot_show()

    def _execute(self) -> dict[str, object]:
        with open(self.script, encoding="utf-8") as file:
            source = file.read()
        module = types.ModuleType("__main__")
        names = module.__dict__
        names.update(__file__=spawned.__file__, __builtins__=builtins, __annotations__={})
        names.update(self.context.names())
        sys.modules["__main__"] = module
        sys.argv = [self.script]
        code = compile(source, self.script, "exec", flags=_TOP_LEVEL_AWAIT, dont_inherit=True)
        result = eval(code, names)  # noqa: S307 - running the user's cell is the purpose
        if hasattr(result, "__await__"):
            import asyncio  # noqa: PLC0415 - only cells that wait for something pay

            asyncio.run(result)
        return names

    def _left(self, error: SystemExit) -> tuple[dict[str, str], int]:
        """The cell called `exit()`: not a failure unless it says so."""
        if error.code is None or error.code == 0:
            return self._ended()
        if isinstance(error.code, str):
            with contextlib.suppress(OSError, ValueError):  # a full disk, or a stream that the cell has closed
                print(error.code, file=sys.stderr)  # noqa: T201 - as Python itself does
        code = error.code if isinstance(error.code, int) else 1
        reason = f"The cell ended itself: exit({error.code!r})."
        return {"state": "FAILED", "reason": reason, "kind": "exit", "traceback": "", "cell_line": ""}, code & 0xFF or 1

    def _failed(self, error: BaseException) -> tuple[dict[str, str], int]:
        from jupyter_autotrain.worker.failure import Failure, script_of_bundle  # noqa: PLC0415 - only failing trials pay

        work = f"{self.directory}/{wire.WORK}"
        script = script_of_bundle(self.script, self.bundle, work)
        failure = Failure(error, script, sys.executable, self.context.reporter.step)
        with contextlib.suppress(OSError, ValueError):  # a full disk, or a stream that the cell has closed
            sys.stdout.flush()
            print(failure.traceback, end="", file=sys.stderr)  # noqa: T201 - the trial's own stderr
        return failure.to_json(), 1

    def _ended(self) -> tuple[dict[str, str], int]:
        well: dict[str, str] = {"state": "SUCCEEDED", "reason": "", "kind": "", "traceback": "", "cell_line": ""}
        objective = str(self.trial.get("objective") or "")
        if self.context.stop_seen:
            return well | {"state": "EARLY_STOPPED", "reason": self.context.stop_reason()}, 0
        if objective and not self.context.was_reported(objective):
            kind, reason = self._without(objective)
            return well | {"state": "FAILED", "kind": kind, "reason": reason}, 1
        return well, 0

    def _without(self, objective: str) -> tuple[str, str]:
        """Why there is no objective: the kind of the failure, and its reason."""
        reporter = self.context.reporter
        refused, why = reporter.refusals.of(objective)
        if why:
            # An infinite value is this trial's own; a value of the wrong type is every trial's.
            kind = "" if refused in {"inf", "-inf"} else "objective"
            return kind, f"No value of the objective {objective!r} could be kept: {why}."
        said = ", ".join(sorted(reporter.seen)) or "nothing"
        return (
            "objective",
            f"The objective {objective!r} was never reported; reported was: {said}. Add report({objective}=...).",
        )

    def _save_returns(self, names: Mapping[str, object]) -> None:
        wanted = self.trial.get("returns")
        if not wanted or not isinstance(wanted, list):
            return
        from jupyter_autotrain.worker.returned import dumps  # noqa: PLC0415 - only trials that return something pay

        for name in wanted:
            if name not in names:
                self.context.reporter.note("error", f"returns: the cell has no variable {name!r} at its end")
                continue
            try:
                data = dumps(names[name])
                wire.write_atomically(f"{self.directory}/{wire.OUTPUTS}/{name}.pkl", data)
            except Exception as error:  # noqa: BLE001 - pickling may raise anything; the trial's result stands
                self.context.reporter.note("error", f"returns: {name!r} cannot be saved: {error}")
                self.losses.append(f"returns: {name!r} was not saved: {error}.")

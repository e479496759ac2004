"""The run of a cell's script as `__main__` in the trial's folder `work/`, and the way it ended."""

from __future__ import annotations

import builtins
import contextlib
import os
import stat
import sys
import types
from collections.abc import Mapping

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.ranks import api, spawn_main

_TOP_LEVEL_AWAIT = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, without the cost of `ast`


class CellRunner:
    """One execution of a cell."""

    def __init__(self, context: api.TrialContext) -> None:
        self.context = context
        self.directory = context.directory
        self.trial = context.trial
        self.bundle = str(self.trial["bundle"])
        self.script = context.script
        self.losses: list[str] = []

    def run(self) -> tuple[dict[str, str], int]:
        """Execute the cell; return the content for `outcome.write`, and the process's exit code.

        Of several workers rank 0 alone has to report the objective, and saves what `returns:` names.
        """
        try:
            return self._run()
        finally:
            self.context.reporter.invalid.flush()

    def _run(self) -> tuple[dict[str, str], int]:
        if missing := self._missing_data():
            return {"state": "FAILED", "reason": missing, "kind": "start", "traceback": "", "cell_line": ""}, 1
        if note := self.trial.get("resume_note"):
            self.context.note_once("warning", f"attempt {self.trial.get('attempt')} {note}")
        if isinstance(seed := self.trial.get("seed"), int):
            from jupyter_autotrain.agent.ranks.library_hooks import seed_everything  # noqa: PLC0415 - only trials with a seed pay

            seed_everything(seed)
        try:
            names = self._execute()
        except SystemExit as error:
            return self._exited(error)
        except KeyboardInterrupt as error:
            return self._failed(error)
        except BaseException as error:  # noqa: BLE001 - whatever ends the cell is its outcome
            is_pruned = type(error).__name__ == "TrialPruned" and self.context.stop_seen  # as Optuna's code ends itself
            if is_pruned:
                return self._ended()
            if self.trial.get("post_mortem") and type(error).__name__ != "BdbQuit":
                self.context.debugging.examine(error)
            return self._failed(error)
        self._save_returns(names)
        self._show_open_figures()
        return self._ended()

    def _missing_data(self) -> str:
        """Have the trial's data there before its code runs; return the reason why it is not, or ""."""
        if not self.trial.get("data"):
            return ""
        from jupyter_autotrain.agent.errors import DataError  # noqa: PLC0415 - only trials with data pay
        from jupyter_autotrain.agent.ranks import data  # noqa: PLC0415 - only trials with data pay

        try:
            data.link(data.entries_of(self.trial), self.context.data)
        except DataError as error:
            return " ".join(str(error).splitlines())
        return ""

    def _show_open_figures(self) -> None:
        """Show the open figures, as a notebook does at the end of a cell."""
        figures = sys.modules.get("jupyter_autotrain.agent.ranks.matplotlib_backend")
        if figures is not None:
            figures.FigureManager.pyplot_show()

    def _execute(self) -> dict[str, object]:
        if isinstance(settings := self.trial.get("flower"), dict):
            from jupyter_autotrain.agent.ranks.federated import flower  # noqa: PLC0415 - few trials are of Flower

            flower.run(self.context, settings)
            return {}
        with open(self.script, encoding="utf-8") as file:
            source = file.read()
        module = types.ModuleType("__main__")
        names = module.__dict__
        names.update(__file__=spawn_main.__file__, __builtins__=builtins, __annotations__={})
        names.update(self.context.names())
        sys.modules["__main__"] = module
        sys.argv = [self.script]
        code = compile(source, self.script, "exec", flags=_TOP_LEVEL_AWAIT, dont_inherit=True)
        result = eval(code, names)  # noqa: S307 - running the user's cell is the purpose
        if hasattr(result, "__await__"):
            import asyncio  # noqa: PLC0415 - only cells that wait for something pay

            asyncio.run(result)
        return names

    def _exited(self, error: SystemExit) -> tuple[dict[str, str], int]:
        """Return the outcome of a cell that called `exit()`: not a failure unless it says so."""
        if error.code is None or error.code == 0:
            return self._ended()
        if isinstance(error.code, str):
            with contextlib.suppress(OSError, ValueError):  # a full disk, or a stream that the cell has closed
                print(error.code, file=sys.stderr)  # noqa: T201 - as Python itself does
        code = error.code if isinstance(error.code, int) else 1
        reason = f"The cell ended itself: exit({error.code!r})."
        return {"state": "FAILED", "reason": reason, "kind": "exit", "traceback": "", "cell_line": ""}, code & 0xFF or 1

    def _failed(self, error: BaseException) -> tuple[dict[str, str], int]:
        from jupyter_autotrain.agent.ranks.failure import Failure, script_of_bundle  # noqa: PLC0415 - only failing trials pay

        work = f"{self.directory}/{wire.WORK}"
        script = script_of_bundle(self.script, self.bundle, work)
        failure = Failure(error, script, sys.executable, self.context.reporter.step)
        with contextlib.suppress(OSError, ValueError):  # a full disk, or a stream that the cell has closed
            sys.stdout.flush()
            print(failure.traceback, end="", file=sys.stderr)  # noqa: T201 - the trial's own stderr
        return failure.without_values() if self.trial.get("client") else failure.to_json(), 1

    def _ended(self) -> tuple[dict[str, str], int]:
        well: dict[str, str] = {"state": "SUCCEEDED", "reason": "", "kind": "", "traceback": "", "cell_line": ""}
        objective = str(self.trial.get("objective") or "")
        if self.context.stop_seen:
            return well | {"state": "EARLY_STOPPED", "reason": self.context.stop_reason()}, 0
        is_due = objective and self.context.worker == 0 and not self._may_be_through(objective)
        if is_due and not self.context.was_reported(objective):
            kind, reason = self._without(objective)
            return well | {"state": "FAILED", "kind": kind, "reason": reason}, 1
        return well, 0

    def _may_be_through(self, objective: str) -> bool:
        """Tell whether it may have had nothing left to do: then the manager has what its earlier attempts reported."""
        reporter = self.context.reporter
        is_silent = not reporter.seen and not reporter.invalid.first_of(objective)[1]
        attempt = self.trial.get("attempt")
        return is_silent and isinstance(attempt, int) and attempt > 1

    def _without(self, objective: str) -> tuple[str, str]:
        """Return the reason for a missing objective: the kind of the failure, and its text."""
        reporter = self.context.reporter
        kind, why = reporter.invalid.first_of(objective)
        if why:
            # An infinite value is this trial's own; a value of the wrong type is every trial's.
            failure_kind = "" if kind in {"inf", "-inf"} else "objective"
            return failure_kind, f"No value of the objective {objective!r} could be kept: {why}."
        reported = ", ".join(sorted(reporter.seen)) or "nothing"
        reason = (
            f"The objective {objective!r} was never reported; reported was: {reported}. Add report({objective}=...)."
        )
        return "objective", reason

    def _save_returns(self, names: Mapping[str, object]) -> None:
        wanted = self.trial.get("returns")
        if not wanted or not isinstance(wanted, list) or self.context.worker != 0:
            return
        from jupyter_autotrain.agent.ranks.returned import dumps  # noqa: PLC0415 - only trials that return something pay

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


def enter_work(directory: str, bundle: str) -> None:
    """Go to `work/`, where the shipped files are linked in, and import from there first."""
    work = f"{directory}/{wire.WORK}"
    os.makedirs(work, mode=0o700, exist_ok=True)
    _link(f"{bundle}/files", work, f"{directory}/{wire.CONTROL}/shipped.{os.urandom(6).hex()}.draft")
    os.chdir(work)
    sys.path.insert(0, work)


def _link(source: str, target: str, draft: str) -> None:
    """Mirror a folder: real folders, so that a trial can write into them, links to files, and copies of some.

    The bundle keeps files read-only that the cell only reads; another trial of it must not find the others changed.
    Copies are made as `draft`, outside of the folder: another worker's cell may be looking into it.
    """
    if not os.path.isdir(source):
        return
    for entry in os.scandir(source):
        there = f"{target}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            os.makedirs(there, mode=0o700, exist_ok=True)
            _link(entry.path, there, draft)
        elif os.path.lexists(there):
            continue
        elif entry.stat().st_mode & stat.S_IWUSR:
            _copy(entry.path, there, draft)
        else:
            with contextlib.suppress(FileExistsError):  # another worker of the trial has made it
                os.symlink(entry.path, there)


def _copy(source: str, target: str, draft: str) -> None:
    """Copy a file, its time too, unless another worker of the trial has done so."""
    import shutil  # noqa: PLC0415 - only trials that write to shipped files pay

    shutil.copy2(source, draft)
    with contextlib.suppress(FileExistsError):
        os.link(draft, target)
    os.unlink(draft)

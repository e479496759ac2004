"""One training cell, run plainly twice and as a trial, all three from the same state of the kernel."""

from __future__ import annotations

import ast
import json
import os
import pickle
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

import jupyter_autotrain as at
from jupyter_autotrain import errors
from jupyter_autotrain.cell import submission
from jupyter_autotrain.verbs import PlanRequest
from tests.corpus.cells import Cell, bound
from tests.corpus.compare import differences
from tests.corpus.kept import dumps
from tests.corpus.kernel import Kernel, Ran
from tests.corpus.outcome import Outcome, judge, lines_that_differ, told_lines, unexplained

CELL_LIMIT_S = 60.0
TRIAL_LIMIT_S = 240.0
_NOT_RUNNABLE = frozenset({"ModuleNotFoundError", "NameError", "SyntaxError", "TooLongError", "URLError"})
_REBINDINGS = ("In", "Out", "_")


def no_plan(_: PlanRequest) -> NoReturn:
    raise AssertionError("no cell of the corpus has a header with `parallel:`")


class Comparison:
    """Data to compare one cell; its files lie in `folder`.

    Args:
        kernel: The notebook's kernel, in the state in which the cell is reached.
        cell: The cell.
        tree: The cell, parsed.
        folder: An empty folder.
    """

    def __init__(self, kernel: Kernel, cell: Cell, tree: ast.Module, folder: Path) -> None:
        self.kernel = kernel
        self.cell = cell
        self.names = bound(tree)
        self.folder = folder

    def run(self, outcome: Outcome) -> Ran:
        """Fill in the outcome; gives how the cell ran in the notebook itself, which goes on from there."""
        again = self.kernel.fork(self._again, CELL_LIMIT_S + 60)
        if not again:
            outcome.why = "it takes too long, or ends its process"
        elif self._read("again")["error"] in _NOT_RUNNABLE:
            outcome.why = f"it does not run here: {self._read('again')['error']}: {self._read('again')['message']}"
        elif not self.kernel.fork(self._submit, TRIAL_LIMIT_S + 30):
            outcome.verdict = "failed"
            outcome.why = "submitting did not come to an end"
        here = self.kernel.run(self.cell.source, CELL_LIMIT_S)
        if (self.folder / "trial").exists():
            self._write("here", asdict(here))
            self._conclude(outcome)
        return here

    def _read(self, name: str) -> dict[str, object]:
        content: dict[str, object] = json.loads((self.folder / name).read_text())
        return content

    def _write(self, name: str, content: dict[str, object]) -> None:
        (self.folder / name).write_text(json.dumps(content))

    # The second ordinary run

    def _again(self) -> None:
        here = Path.cwd()
        names = sorted({*self.names, *self._needed()})
        copy = shutil.copytree(here, self.folder / here.name, symlinks=True)
        os.chdir(copy)
        self.kernel.become_another_run()
        ran = self.kernel.run(self.cell.source, CELL_LIMIT_S)
        os.chdir(here)
        values: dict[str, bytes] = {}
        for name in names:
            try:
                values[name] = dumps(self.kernel.shell.user_ns[name])
            except Exception:  # noqa: BLE001 - a pickle may fail with anything; such variables are left out
                continue
        (self.folder / "values").write_bytes(pickle.dumps(values))
        self._write("again", {**asdict(ran), "names": names})

    def _needed(self) -> list[str]:
        """Return the variables that travel with the cell: it may change them."""
        try:
            draft = submission.read(
                self.kernel.shell, "corpus", self.cell.source, cwd=Path.cwd(), environ=os.environ, planner=no_plan
            )
        except Exception:  # noqa: BLE001 - a refusal or a fault of ours: the submission itself will tell
            return []
        return [entry.name for entry in draft.captured.captured if entry.how == "data" and entry.name.isidentifier()]

    # The trial

    def _submit(self) -> None:
        names = [name for name in self._read("again")["names"] if name not in _REBINDINGS]  # type: ignore[attr-defined]
        header = f"%%autotrain corpus\nreturns: {json.dumps(names, ensure_ascii=False)}\n---\n"
        before_s = time.perf_counter()
        before_cpu_s = time.process_time()
        ran = self.kernel.run(header + self.cell.source, TRIAL_LIMIT_S)
        took = {"submit_s": time.perf_counter() - before_s, "submit_cpu_s": time.process_time() - before_cpu_s}
        if ran.error:
            self._write("trial", {"refused": f"{ran.error}: {ran.message}"})
            return
        experiment = at.experiments(limit=1)[0]  # `_` may be a variable of the notebook
        ended = experiment.wait(TRIAL_LIMIT_S)
        if not ended:
            experiment.stop(grace_s=0.1)
        self._write("trial", {"notice": ran.stdout, "ended": ended, **took, **_result(experiment)})

    # The comparison

    def _conclude(self, outcome: Outcome) -> None:
        trial = self._read("trial")
        if "refused" in trial:
            ours = hasattr(errors, str(trial["refused"]).partition(":")[0])
            outcome.verdict = "refused" if ours else "failed"
            outcome.why = str(trial["refused"])
            return
        outcome.notice = told_lines(str(trial["notice"]))
        outcome.submit_s = trial["submit_s"]  # type: ignore[assignment]
        outcome.submit_cpu_s = trial["submit_cpu_s"]  # type: ignore[assignment]
        outcome.verdict = "failed"
        if not self.kernel.fork(lambda: self._compare(outcome), 300):
            outcome.why = "the comparison did not come to an end"
            return
        compared = self._read("compared")
        outcome.compared = compared["count"]  # type: ignore[assignment]
        outcome.left_out = compared["left_out"]  # type: ignore[assignment]
        endings = {"here": self._read("here")["error"], "trial": trial["error"], "reason": trial["reason"]}
        judge(outcome, endings, compared["paths"])  # type: ignore[arg-type]

    def _compare(self, outcome: Outcome) -> None:
        """Run in a fork: what a pickle brings along stays out of the notebook."""
        here = self._read("here")
        again = self._read("again")
        trial = self._read("trial")
        values = pickle.loads((self.folder / "values").read_bytes())
        paths = lines_that_differ(str(here["stdout"]), str(again["stdout"]), str(trial["stdout"]))
        left_out: list[str] = []
        names: Sequence[str] = again["names"]  # type: ignore[assignment]
        if here["error"]:
            names = []
        for name in names:
            if name not in values:
                left_out.append(name)
                continue
            mine = self.kernel.shell.user_ns.get(name)
            own = differences(mine, pickle.loads(values[name]))
            found = unexplained(_of_trial(mine, Path(str(trial["directory"])), name), own)
            paths += [f"{name}{path}" for path in found]
            left_out += [name] if own else []
        compared = {"paths": paths, "left_out": left_out, "count": len(names) - len(left_out)}
        self._write("compared", compared)


def _of_trial(mine: object, directory: Path, name: str) -> list[str]:
    file = directory / "outputs" / f"{name}.pkl"
    if not file.exists():
        return [" (not returned)"]
    try:
        return differences(mine, pickle.loads(file.read_bytes()))
    except Exception as error:  # noqa: BLE001 - unpickling runs any code
        return [f" (cannot be rebuilt: {type(error).__name__}: {error})"]


def _result(experiment: at.Experiment) -> dict[str, object]:
    """Return how the one trial ended, and what it printed."""
    record = experiment.trials[0]
    stderr = experiment.logs(1, "stderr", limit_bytes=None)
    last = [line for line in stderr.splitlines() if line and not line.startswith(" ")][-1:] or [""]
    error = "" if record.state == "SUCCEEDED" else last[0].partition(":")[0].rpartition(".")[2]
    return {
        "state": str(record.state),
        "error": error or ("" if record.state == "SUCCEEDED" else str(record.state)),
        "reason": record.reason[:300],
        "stdout": experiment.logs(1, limit_bytes=None),
        "directory": str(experiment.directory(1)),
    }

"""The content of a run card before it becomes text or HTML: bounded, without paths of this machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.notes import Picture
from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord, placement_labels
from jupyter_autotrain.core.table import Table
from jupyter_autotrain.core.text_format import count, cut, duration, number, parameters
from jupyter_autotrain.views.summary import best_text

_ROWS = 10
_FAILED_ROWS = 2
_PATH = re.compile(r"(?<![\w.…/])~?/(?:[^\s/:'\"<>|]+/)+(?=[^\s/:'\"<>|])")


@dataclass(frozen=True, slots=True)
class CardContent:
    """The content of one run card.

    Attributes:
        record: The experiment.
        trials: Its trials, best first.
        now_s: The time that a running experiment's age is counted to.
        trial_warnings: What trials warned of.
        pictures: Pictures of one trial, the newest first.
    """

    record: ExperimentRecord
    trials: Sequence[TrialRecord]
    now_s: float
    trial_warnings: Sequence[str] = ()
    pictures: Sequence[Picture] = ()

    @property
    def name(self) -> str:
        """The experiment's name."""
        return cut(self.record.label, 80)

    @property
    def order(self) -> list[int]:
        """The numbers of its trials, best first."""
        return [trial.number for trial in self.trials]

    @property
    def objective(self) -> str:
        """The name of the value of a trial; "" without an objective."""
        return cut(self.record.spec.objective.label, 40) if self.record.spec.objective else ""

    @property
    def reason(self) -> str:
        """The reason why the experiment ended before its trials were used up, and what was lost."""
        return cut(without_paths(self.record.remark), 200)

    @property
    def warnings(self) -> list[str]:
        """The warnings of trials, cut to a line each."""
        return [cut(without_paths(text), 200) for text in self.trial_warnings]

    @property
    def data(self) -> list[str]:
        """The data that was fetched: where from, its license, and how much it holds."""
        return [cut(f"data.{one.name}: {one.origin}", 200) for one in self.record.spec.data if one.origin]

    @property
    def show_command(self) -> str:
        """The command that shows the live view again."""
        return f"%autotrain show {self.name}"

    @property
    def trials_left_out(self) -> str:
        """The number of trials without a row, as text; "" when each has one."""
        left = len(self.trials) - _ROWS
        return f"and {count(left, 'more trial')}" if left > 0 else ""

    @property
    def pictures_text(self) -> str:
        """The number of pictures, and the way to get them; "" without any."""
        if not self.pictures:
            return ""
        newest = self.pictures[0].title
        return f"{count(len(self.pictures), 'picture')}, the newest of {newest}: %autotrain pull {self.name}"

    def progress(self) -> str:
        """Return how many trials have ended and failed, how long it took, and where it ran."""
        ended = sum(trial.state.is_final for trial in self.trials)
        failed = sum(trial.state is TrialState.FAILED for trial in self.trials)
        total = max(self.record.spec.trials, len(self.trials))
        took = duration(self.record.took_s(self.now_s))
        parts = [f"{ended} of {count(total, 'trial')} ended", f"{failed} failed" if failed else ""]
        return " · ".join(filter(None, [*parts, took, self.record.spec.backend_names]))

    def best(self) -> str:
        """Return the best trial with its parameters; "" without any value."""
        objective = self.record.spec.objective
        if objective is None or not self.trials or self.trials[0].value is None:
            return ""
        best = self.trials[0]
        params = f": {_parameters(best)}" if best.params else ""
        return f"Best {best_text(objective, best)}{params}"

    def heads(self) -> tuple[str, ...]:
        """Return the heads of the columns of `rows`; that of the value is "" without an objective."""
        return ("trial", "state", self.objective, "time", "runs on", "parameters", "reason")

    def rows(self) -> list[tuple[str, ...]]:
        """Return the rows of the best trials, with room for failures.

        The reason of a failure is worth more than the tenth best value.
        """
        failed = [trial for trial in self.trials[_ROWS - _FAILED_ROWS :] if trial.state is TrialState.FAILED]
        kept = failed[:_FAILED_ROWS]
        labels = placement_labels(self.trials)
        return [self._row(trial, labels.get(trial.number, "")) for trial in [*self.trials[: _ROWS - len(kept)], *kept]]

    def _row(self, trial: TrialRecord, runs_on: str) -> tuple[str, ...]:
        took_s = trial.took_s(self.now_s)
        return (
            str(trial.number),
            trial.state,
            number(trial.value) if self.objective else "",
            "" if took_s is None else duration(took_s),
            cut(runs_on, 40),
            _parameters(trial),
            cut(without_paths(trial.reason), 120),
        )

    def text(self) -> str:
        """Return the card as text."""
        lines = [f"{self.name}  {self.record.state}  {self.progress()}", self.best(), self.reason]
        rows = self.rows()
        below = [
            Table(self.heads(), rows).text() if rows else "",
            self.trials_left_out,
            *self.data,
            *self.warnings,
            self.pictures_text,
            f"Show it live: {self.show_command}",
        ]
        return "\n".join([*filter(None, lines), "", *filter(None, below)])


def without_paths(text: str) -> str:
    """Return the text with each path that has folders cut to its last part."""
    return _PATH.sub("…/", text)


def _parameters(trial: TrialRecord) -> str:
    return cut(parameters(trial.params), 80)

"""The results of an experiment evaluated and shown: Pareto front, importances, plots, a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from jupyter_autotrain.client.results.frames import ExperimentFrames
from jupyter_autotrain.core import table
from jupyter_autotrain.core.objective import pareto_front
from jupyter_autotrain.core.records import Trials
from jupyter_autotrain.core.tuner import Observation

_SPREAD: Final = ("mean", "std", "count")


class ExperimentResults(ExperimentFrames):
    """Evaluates what the trials of one experiment have reported, and shows it."""

    def pareto_front(self) -> Trials:
        """Return the ended trials that no other beats in one objective without being worse in another, by number."""
        objectives = self.record.spec.objectives
        ended = [trial for trial in self.store.trials(self.id) if trial.state.is_final]
        columns = list(map(self.objective_values, objectives))
        whole: dict[int, list[float]] = {}
        for trial in ended:
            values = [column[trial.number] for column in columns if trial.number in column]
            if columns and len(values) == len(columns):
                whole[trial.number] = values
        front = set(pareto_front(objectives, whole))
        return Trials(trial for trial in ended if trial.number in front)

    def importances(self, metric: str | None = None, evaluator: str = "ped_anova") -> dict[str, float]:
        """Return how much each parameter matters for an objective, the greatest first; their sum is 1.

        Args:
            metric: The objective; None: the one that ranks trials.
            evaluator: Optuna's `ped_anova`, about the best trials, or `fanova`, about all of them.

        Raises:
            AutotrainError: There are too few trials, or no such objective or evaluator.
        """
        from jupyter_autotrain.tuners.importances import importances  # noqa: PLC0415 - it loads Optuna

        objective = self.objective_of(metric)
        values = self.objective_values(objective)
        trials = self.store.trials(self.id)
        seen = [Observation(trial.number, trial.params, trial.state, values.get(trial.number)) for trial in trials]
        return importances(self.record.spec.search, objective, seen, evaluator)

    def plot_curves(
        self, metric: str | None = None, *, by: str | Sequence[str] = (), over: str | Sequence[str] = ()
    ) -> object:
        """Return a plot of a metric's curves; of groups of trials their mean, with the deviation as dashed lines.

        Args:
            metric: Its name; None: the objective's.
            by: As that of `trials_frame`.
            over: As that of `trials_frame`.
        """
        return table.plot("plots:curves", self, metric or self.objective_of().metric, by=by, over=over)

    def plot_importances(self, metric: str | None = None, evaluator: str = "ped_anova") -> object:
        """Return a plot of `importances(metric, evaluator)`."""
        return table.plot("plots:importances", self, metric, evaluator)

    def plot_pareto(self, x: str | None = None, y: str | None = None) -> object:
        """Return a plot of two objectives, by default the first two, in which the Pareto front stands out."""
        return table.plot("plots:pareto", self, x, y)

    def plot_slice(self, *names: str, metric: str | None = None) -> object:
        """Return a plot of an objective against each of some parameters; without names against every one."""
        return table.plot("parameter_plots:slices", self, names, metric)

    def plot_contour(self, x: str, y: str, metric: str | None = None) -> object:
        """Return a plot of an objective over two parameters: its height between the trials is interpolated."""
        return table.plot("parameter_plots:contour", self, x, y, metric)

    def plot_parallel(self, *names: str, metric: str | None = None) -> object:
        """Return a plot of trials as lines over parallel axes: parameters, by default all, and the objective."""
        return table.plot("trial_plots:parallel", self, names, metric)

    def plot_usage(self, *trials: int) -> object:
        """Return a plot of what trials use of their nodes, by default the best: CPU, memory and GPUs over time."""
        return table.plot("trial_plots:usage", self, trials)

    def report(self, file: str | Path, *, by: str | Sequence[str] = (), over: str | Sequence[str] = ()) -> Path:
        """Write all results as one HTML file that needs neither a server nor a network; give its path.

        Args:
            file: Where to.
            by: As that of `trials_frame`; curves of groups are then shown beside those of trials.
            over: As that of `trials_frame`.

        Raises:
            OSError: It cannot be written.
        """
        path = Path(file)
        path.write_text(table.report(self, by=by, over=over), encoding="utf-8")
        return path

"""The record of events: frozen rows as the store gives them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.states import ExperimentState, TrialState
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.spec import ExperimentSpec, Placement, TrialSource
from jupyter_autotrain.core.table import Table
from jupyter_autotrain.core.text_format import clock_time, count, cut, duration, number, parameters

_HEADS: Final = ("trial", "state", "value", "time", "runs on", "parameters", "reason")
_ROWS: Final = 20


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """One trial. Times are seconds since the epoch; `value` is that of its curve, by the objective's rule.

    `source` is the trial whose checkpoint it began with, if any.
    """

    experiment_id: str
    number: int
    state: TrialState
    params: Mapping[str, JsonValue]
    reason: str = ""
    attempt: int = 1
    value: float | None = None
    created_s: float = 0.0
    started_s: float | None = None
    ended_s: float | None = None
    ref: JobRef | None = None
    placement: Placement = field(default_factory=Placement)
    source: TrialSource | None = None

    def took_s(self, now_s: float | None = None) -> float | None:
        """Return the seconds that its present attempt took, or has run until `now_s`.

        They are never negative, and None where they are not known.
        """
        end_s = now_s if self.ended_s is None else self.ended_s
        if self.started_s is None or end_s is None:
            return None
        return max(end_s - self.started_s, 0.0)

    @property
    def gpus(self) -> tuple[str, ...]:
        """Ids of the accelerators that it holds, or held."""
        return self.placement.accelerators

    @property
    def started_from(self) -> str:
        """The trial whose checkpoint it began with, such as `digits#3`; "" where it began anew."""
        return "" if self.source is None else self.source.label

    @property
    def parent(self) -> int | None:
        """The number of the trial of the same experiment whose checkpoint it began with; None for none."""
        return self.source.number if self.source and self.source.experiment_id == self.experiment_id else None

    @property
    def backend(self) -> str:
        """The name of the backend that it is or was put on; "" while it waits."""
        return self.placement.backend

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that it is or was put on, as far as they are known."""
        return tuple(placed.node for placed in self.placement.nodes)

    def _repr_html_(self) -> str:
        """Return a table of one row, which a notebook shows for it as a value."""
        return Table(_HEADS, [_row(self)]).html()


class Trials(list[TrialRecord]):
    """Trials in a list that a notebook shows as a short table."""

    def __repr__(self) -> str:
        return self._table().text() if self else "no trial yet"

    def _repr_html_(self) -> str:
        return self._table().html() if self else "<p>no trial yet</p>"

    def _table(self) -> Table:
        labels = placement_labels(self)
        rows = [_row(trial, labels.get(trial.number, "")) for trial in self[:_ROWS]]
        return Table(_HEADS, rows, more=f"and {len(self) - _ROWS} more" if len(self) > _ROWS else "")


def placement_labels(trials: Sequence[TrialRecord]) -> dict[int, str]:
    """Return the place where each trial is or was, by number; {} if all are at one.

    It is the backend, and the node where the backend has several.
    """
    nodes: dict[str, set[tuple[str, ...]]] = {}
    for trial in trials:
        nodes.setdefault(trial.backend, set()).add(trial.nodes)
    labels = {}
    for trial in trials:
        if trial.backend:
            has_several = len(nodes[trial.backend]) > 1 and trial.nodes
            labels[trial.number] = f"{trial.backend}: {', '.join(trial.nodes)}" if has_several else trial.backend
    return labels if len(set(labels.values())) > 1 else {}


def _row(trial: TrialRecord, runs_on: str = "") -> tuple[str, ...]:
    value = "" if trial.value is None else number(trial.value)
    took_s = trial.took_s()
    took = "" if took_s is None else duration(took_s)
    reason = cut(trial.reason.partition("\n")[0], 80)
    return str(trial.number), str(trial.state), value, took, runs_on, cut(parameters(trial.params), 80), reason


@dataclass(frozen=True, slots=True)
class ExperimentRecord:
    """One experiment, as read: `state` is derived from its trials then.

    Attributes:
        version: The N of `name@N`.
        superseded: True when a newer experiment has the same name.
        retried_s: When it was last begun again after its end; None: never.
        begun: `created_s` on the boot-time clock; None when that is not known.
    """

    id: str
    name: str
    version: int
    spec: ExperimentSpec
    state: ExperimentState
    created_s: float
    ended_s: float | None = None
    reason: str = ""
    closed: bool = False
    stop_requested: bool = False
    counts: Mapping[TrialState, int] = field(default_factory=dict)
    superseded: bool = False
    retried_s: float | None = None
    begun: BootTime | None = None

    def now_s(self, wall_s: float, now: BootTime) -> float:
        """Return the present time as it is counted for this experiment: `created_s` and the time since.

        A wall clock that jumps changes no duration; after a reboot only the wall clock is known.

        Args:
            wall_s: The wall clock, seconds since the epoch.
            now: The same instant on the boot-time clock.
        """
        passed_s = now.since(self.begun)
        return wall_s if passed_s is None else self.created_s + passed_s

    @property
    def begun_s(self) -> float:
        """The begin of its present round: its submission, or the last retry after its end."""
        return self.created_s if self.retried_s is None else self.retried_s

    def took_s(self, now_s: float) -> float:
        """Return the seconds that its present round took, or has run until now; never negative."""
        return max((now_s if self.ended_s is None else self.ended_s) - self.begun_s, 0.0)

    @property
    def remark(self) -> str:
        """The remark beside its state: why it ended before its trials were used up, and how many trials were lost."""
        many = self.counts.get(TrialState.LOST, 0) if self.state.is_final else 0
        return "; ".join(filter(None, (self.reason, f"{count(many, 'trial')} lost" if many else "")))

    @property
    def ended(self) -> int:
        """The number of its trials that have ended."""
        return sum(many for state, many in self.counts.items() if state.is_final)

    @property
    def counts_json(self) -> JsonObject:
        """The number of its trials in each state."""
        return {state.value: many for state, many in self.counts.items()}

    @property
    def label(self) -> str:
        """The name that people use for it."""
        return experiment_label(self.name, self.version, superseded=self.superseded)


def experiment_label(name: str, version: int, *, superseded: bool) -> str:
    """Return the label of an experiment: its name, or `name@N` where the name alone may mean another one."""
    return f"{name}@{version}" if version > 1 or superseded else name


@dataclass(frozen=True, slots=True)
class UnreachableNode:
    """A node that does not answer since a time (seconds since the epoch), and how many trials go on there."""

    name: str
    since_s: float
    trials: int

    def __str__(self) -> str:
        go_on = "goes on" if self.trials == 1 else "go on"
        return (
            f"{self.name} does not answer since {clock_time(self.since_s)}; {count(self.trials, 'trial')} {go_on} there"
        )


@dataclass(frozen=True, slots=True)
class StateChange:
    """One change of a trial's state, with its time and reason; `placement` where the change put the trial somewhere."""

    id: int
    experiment_id: str
    number: int
    attempt: int
    state: TrialState
    time_s: float
    reason: str = ""
    placement: Placement | None = None


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """One value of one metric. `id` grows with arrival; `value` is None for an explicit NaN."""

    id: int
    number: int
    attempt: int
    name: str
    step: int
    time_s: float
    value: float | None


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a client to the manager.

    `kind` is one of: stop, retry, resume, update, continue, clean. `args` depends on it; `result` is set when `done`.
    """

    id: int
    kind: str
    experiment_id: str
    args: JsonObject
    created_s: float
    done: bool = False
    result: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Note:
    """One message of a trial to the user. `level` is info, warning or error; `count` says how often it was sent."""

    id: int
    number: int
    attempt: int
    time_s: float
    level: str
    text: str
    count: int = 1

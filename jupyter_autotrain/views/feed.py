"""The way from the store to a live view: the whole state, or what changed since the frame before.

A frame is a JSON object and three byte columns. Rows of a series (one metric of one attempt of a trial) are counted
from 0; each block names the row it begins with, so a view drops what it has and detects what it missed.

```
{"seq": 7,                                       frames are counted; a view that missed one asks for the whole
 "experiment": {id, name, state, final, reason, backend, ranks (workers of a trial),
                clones (whether its trials can be cloned), objective (the metric), objective_label,
                objectives (all: metric, direction, label), trials, begun_s, ended_s, now_s, eta_s,
                best (the number of the best trial)},
 "trials": [{number, state, params, value, more_values (of the further objectives), attempt, started_s, ended_s, reason,
             started_from (the trial whose checkpoint it began with), parent (its number, where it is one of these),
             runs_on (backend and node; "" where all trials are at one)}, ...],
 "series": [[metric, trial, attempt, first row, rows], ...],
 "warnings": [sentence, ...],                    all of them, nodes that do not answer first; where they have changed
 "pictures": [[trial, attempt, name, step], ...]}     the newest, in frames where they have changed
steps, values, times (seconds since the epoch): float64 of all blocks, one after another
```
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.notes import summarize_warnings
from jupyter_autotrain.core.objective import best_of
from jupyter_autotrain.core.records import ExperimentRecord, Note, TrialRecord, placement_labels
from jupyter_autotrain.store import Store
from jupyter_autotrain.views import trial_pictures
from jupyter_autotrain.views.json_objects import more_values, objectives_json, strict, trial_json
from jupyter_autotrain.views.series import SeriesBlock, SeriesKey, blocks
from jupyter_autotrain.views.summary import eta_s

_WARNINGS: Final = 10
_TRIAL_FIELDS: Final = (
    "number", "state", "params", "value", "attempt", "started_s", "ended_s", "reason", "started_from", "parent",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FeedFrame:
    """One message to a view; `content` as drawn above, `ended` the experiment where it has ended."""

    content: JsonObject
    steps: bytes = b""
    values: bytes = b""
    times: bytes = b""
    ended: ExperimentRecord | None = None

    @property
    def buffers(self) -> list[bytes]:
        """The columns in the order in which they travel."""
        return [self.steps, self.values, self.times]


class Feed:
    """The changes of one experiment for one view; each row, trial and note is given once.

    Args:
        store: The store.
        experiment_id: The experiment.
        manager_fault: Gives why the manager does nothing now; "" where it does.
    """

    def __init__(self, store: Store, experiment_id: str, manager_fault: Callable[[], str] = str) -> None:
        self._store = store
        self._id = experiment_id
        self._manager_fault = manager_fault
        self._after_id = 0
        self._rows: dict[SeriesKey, int] = {}
        self._trials: dict[int, TrialRecord] = {}
        self._notes: dict[tuple[int, int, str, str], Note] = {}
        self._last_note_id = 0
        self._labels: dict[int, str] = {}
        self._unreachable: list[str] = []
        self.seq = 0

    def delta(self, now_s: float) -> FeedFrame:
        """Return the news since the last call; the first call gives everything."""
        # The state is read first: when it is final, everything read after it is complete.
        record = self._store.experiment(self._id)
        trials = self._store.trials(self._id)
        labels = placement_labels(trials)
        changed = [trial for trial in trials if self._is_news(trial, labels)]
        chunks = self._store.metric_chunks(self._id, self._after_id)
        self._trials.update((trial.number, trial) for trial in changed)
        self._labels = labels
        self._after_id = chunks[-1].last_id if chunks else self._after_id
        self.seq += 1
        content: JsonObject = {
            "seq": self.seq,
            "experiment": _experiment_json(record, trials, record.now_s(now_s, BootTime.now())),
            "trials": [self._trial_json(record, trial) for trial in changed],
            **self._changed_notes(is_final=record.state.is_final),
        }
        return _frame(content, blocks(chunks, self._rows), record if record.state.is_final else None)

    def _trial_json(self, record: ExperimentRecord, trial: TrialRecord) -> JsonValue:
        more = more_values(self._store, record, trial.number)
        runs_on = self._labels.get(trial.number, "")
        return strict({**trial_json(trial, _TRIAL_FIELDS), "more_values": more, "runs_on": runs_on})

    def _is_news(self, trial: TrialRecord, labels: Mapping[int, str]) -> bool:
        is_moved = self._labels.get(trial.number) != labels.get(trial.number)
        return is_moved or self._trials.get(trial.number) != trial

    def _changed_notes(self, *, is_final: bool) -> dict[str, JsonValue]:
        """Return the warnings and the pictures of trials, each when it has changed."""
        fresh = self._store.notes(self._id, self._last_note_id)
        unreachable = [f"{node}." for node in self._store.unreachable_nodes(self._id)]
        if not is_final and (fault := self._manager_fault()):
            unreachable.insert(0, fault)
        self._notes.update(((note.number, note.attempt, note.level, note.text), note) for note in fresh)
        if not fresh and unreachable == self._unreachable:
            return {}
        self._unreachable = unreachable
        self._last_note_id = fresh[-1].id if fresh else self._last_note_id
        notes = self._notes.values()
        changed: dict[str, JsonValue] = {"warnings": [*unreachable, *summarize_warnings(notes, _WARNINGS)]}
        if pictures := trial_pictures.listed(notes):
            changed["pictures"] = pictures
        return changed


def snapshot(
    store: Store, experiment_id: str, now_s: float, seq: int = 0, manager_fault: Callable[[], str] = str
) -> FeedFrame:
    """Return the whole state, as the first delta of a fresh feed.

    `seq` is that of the feed that continues it.
    """
    whole = Feed(store, experiment_id, manager_fault).delta(now_s)
    return FeedFrame({**whole.content, "seq": seq}, whole.steps, whole.values, whole.times, whole.ended)


def _frame(content: JsonObject, found: Mapping[SeriesKey, SeriesBlock], ended: ExperimentRecord | None) -> FeedFrame:
    series: list[JsonValue] = []
    steps: list[bytes] = []
    values: list[bytes] = []
    times: list[bytes] = []
    for key, block in found.items():
        series.append([*key, block.first, block.rows])
        steps += block.steps
        values += block.values
        times += block.times
    return FeedFrame({**content, "series": series}, b"".join(steps), b"".join(values), b"".join(times), ended)


def _experiment_json(record: ExperimentRecord, trials: Sequence[TrialRecord], now_s: float) -> JsonObject:
    objective = record.spec.objective
    best = best_of(objective, trials)
    return {
        "id": record.id,
        "name": record.label,
        "state": record.state,
        "final": record.state.is_final,
        "reason": record.remark,
        "backend": record.spec.backend_names,
        "ranks": record.spec.resources.ranks,
        "clones": record.spec.has_independent_trials,
        "objective": objective.metric if objective else None,
        "objective_label": objective.label if objective else None,
        "objectives": objectives_json(record),
        "best": best.number if best else None,
        "trials": max(record.spec.trials, len(trials)),
        "begun_s": record.begun_s,
        "ended_s": record.ended_s,
        "now_s": now_s,
        "eta_s": eta_s(record, trials, now_s),
    }

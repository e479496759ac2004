"""Decisions about experiments: those of the manager that must survive it, people's tags and notes.

Decisions of the manager that must survive it. How an attempt shall end, that an experiment creates or starts no more
trials, what blocks each trial, and which nodes do not answer. A decision on an attempt holds for that attempt only,
so a retry needs no clearing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from jupyter_autotrain.agent.states import FinalState, TrialState
from jupyter_autotrain.core.records import UnreachableNode
from jupyter_autotrain.store.mixin import StoreMixin, check_types, key_of, plain, undamaged
from jupyter_autotrain.store.row_files import keep_experiment

DecisionKind: TypeAlias = Literal["closing", "objective"]
"""closing: no further trial is created; objective: waiting trials are blocked until a trial reports the objective."""

Attempts: TypeAlias = Mapping[tuple[int, int], FinalState]
"""Final states by (trial number, attempt)."""

_ADD_END: Final = (
    "INSERT INTO end_decisions (experiment, number, attempt, state, reason) "
    "VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
_ENDS: Final = "SELECT number, attempt, state, reason FROM end_decisions WHERE experiment = ?"
_SET: Final = "INSERT OR REPLACE INTO experiment_decisions (experiment, kind, reason) VALUES (?, ?, ?)"
_UNSET: Final = "DELETE FROM experiment_decisions WHERE experiment = ? AND kind = ?"
_ADD_NODE: Final = "INSERT INTO unreachable_nodes (experiment, node, since_s, trials) VALUES (?, ?, ?, ?)"
_ADD_REASON: Final = "INSERT INTO block_reasons (experiment, number, reason) VALUES (?, ?, ?)"


class DecisionTables(StoreMixin):
    """The decisions that the manager has not carried out yet."""

    def decide_ends(self, experiment_id: str, ends: Attempts) -> None:
        """Keep how attempts shall end; the first decision on an attempt stays."""
        with self._database.write() as connection:
            key = key_of(connection, experiment_id)
            for (number, attempt), end in ends.items():
                connection.execute(_ADD_END, (key, number, attempt, end.state, plain(end.reason)))

    def end_decisions(self, experiment_id: str) -> dict[tuple[int, int], FinalState]:
        """Return how attempts shall end or have ended by a decision, by (trial number, attempt)."""
        with self._database.read() as connection:
            rows = connection.execute(_ENDS, (key_of(connection, experiment_id),)).fetchall()
        ends: dict[tuple[int, int], FinalState] = {}
        for number, attempt, state, reason in rows:
            with undamaged(f"the decision on trial {number} of experiment {experiment_id}"):
                check_types((reason, str), (number, int), (attempt, int))
                ends[number, attempt] = FinalState(TrialState(state), reason)
        return ends

    def decide(self, experiment_id: str, kind: DecisionKind, reason: str) -> None:
        """Keep a decision on an experiment; an empty reason withdraws it."""
        with self._database.write() as connection:
            key = key_of(connection, experiment_id)
            if reason:
                connection.execute(_SET, (key, kind, plain(reason)))
            else:
                connection.execute(_UNSET, (key, kind))

    def decision(self, experiment_id: str, kind: DecisionKind) -> str:
        """Return the reason of a decision on an experiment; "" when there is none."""
        query = "SELECT reason FROM experiment_decisions WHERE experiment = ? AND kind = ?"
        with self._database.read() as connection:
            row = connection.execute(query, (key_of(connection, experiment_id), kind)).fetchone()
        return "" if row is None else str(row[0])

    def set_block_reasons(self, experiment_id: str, reasons: Mapping[int, str]) -> None:
        """Replace what blocks each trial: by trial number, the rest of a sentence that begins with the trial."""
        with self._database.write() as connection:
            key = key_of(connection, experiment_id)
            connection.execute("DELETE FROM block_reasons WHERE experiment = ?", (key,))
            rows = [(key, number, plain(reason)) for number, reason in reasons.items()]
            connection.executemany(_ADD_REASON, rows)

    def block_reasons(self, experiment_id: str) -> dict[int, str]:
        """Return what blocks each trial, as `set_block_reasons` kept it."""
        query = "SELECT number, reason FROM block_reasons WHERE experiment = ?"
        with self._database.read() as connection:
            rows = connection.execute(query, (key_of(connection, experiment_id),)).fetchall()
        return {number: str(reason) for number, reason in rows}

    def set_unreachable_nodes(self, experiment_id: str, nodes: Sequence[UnreachableNode]) -> None:
        """Replace the nodes with trials of an experiment that do not answer."""
        with self._database.write() as connection:
            key = key_of(connection, experiment_id)
            connection.execute("DELETE FROM unreachable_nodes WHERE experiment = ?", (key,))
            rows = [(key, plain(node.name), node.since_s, node.trials) for node in nodes]
            connection.executemany(_ADD_NODE, rows)

    def unreachable_nodes(self, experiment_id: str) -> list[UnreachableNode]:
        """Return the nodes with trials of an experiment that do not answer, by name."""
        query = "SELECT node, since_s, trials FROM unreachable_nodes WHERE experiment = ? ORDER BY node"
        with self._database.read() as connection:
            rows = connection.execute(query, (key_of(connection, experiment_id),)).fetchall()
        nodes = []
        for name, since_s, trials in rows:
            with undamaged(f"the unreachable nodes of experiment {experiment_id}"):
                check_types((name, str), (since_s, float | int), (trials, int))
                nodes.append(UnreachableNode(name, since_s, trials))
        return nodes


_SET_ANNOTATION: Final = "INSERT OR REPLACE INTO annotations (experiment, tags, note) VALUES (?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Annotation:
    """The tags of an experiment, each once, and its note."""

    tags: tuple[str, ...] = ()
    note: str = ""


class AnnotationTable(StoreMixin):
    """Tags and notes of experiments."""

    def annotate_experiment(
        self, experiment_id: str, *, tags: Sequence[str] | None = None, note: str | None = None
    ) -> Annotation:
        """Set the tags or the note of an experiment durably; None keeps what is there. Gives both as they are then.

        Raises:
            UnknownExperimentError: There is none with that id.
        """
        with self._database.write(durable=True) as connection:
            key = key_of(connection, experiment_id)
            row = connection.execute("SELECT tags, note FROM annotations WHERE experiment = ?", (key,)).fetchone()
            kept = _annotation(experiment_id, row) if row else Annotation()
            tags = kept.tags if tags is None else tuple(dict.fromkeys(map(plain, tags)))
            changed = Annotation(tuple(tags), kept.note if note is None else plain(note))
            connection.execute(_SET_ANNOTATION, (key, json.dumps(changed.tags), changed.note))
            keep_experiment(connection, self._home, key)
        return changed

    def annotations(self) -> dict[str, Annotation]:
        """Return the tags and notes of all experiments that have any, by experiment id."""
        query = "SELECT id, tags, note FROM annotations JOIN experiments ON key = experiment"
        with self._database.read() as connection:
            rows = connection.execute(query).fetchall()
        return {experiment_id: _annotation(experiment_id, (tags, note)) for experiment_id, tags, note in rows}


def _annotation(experiment_id: str, row: tuple[str, str]) -> Annotation:
    tags, note = row
    with undamaged(f"the tags of experiment {experiment_id}"):
        check_types((tags, str), (note, str))
        return Annotation(tuple(map(str, json.loads(tags))), note)

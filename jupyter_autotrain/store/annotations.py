"""What people write at an experiment: tags and a note."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from jupyter_autotrain.store.mixin import StoreMixin, check_types, key_of, plain, undamaged
from jupyter_autotrain.store.row_files import keep_experiment

_SET: Final = "INSERT OR REPLACE INTO annotations (experiment, tags, note) VALUES (?, ?, ?)"


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
            connection.execute(_SET, (key, json.dumps(changed.tags), changed.note))
            keep_experiment(connection, self._home, key)
        return changed

    def annotations(self) -> dict[str, Annotation]:
        """The tags and notes of all experiments that have any, by experiment id."""
        query = "SELECT id, tags, note FROM annotations JOIN experiments ON key = experiment"
        with self._database.read() as connection:
            rows = connection.execute(query).fetchall()
        return {experiment_id: _annotation(experiment_id, (tags, note)) for experiment_id, tags, note in rows}


def _annotation(experiment_id: str, row: tuple[str, str]) -> Annotation:
    tags, note = row
    with undamaged(f"the tags of experiment {experiment_id}"):
        check_types((tags, str), (note, str))
        return Annotation(tuple(map(str, json.loads(tags))), note)

"""The common part of the store's sections, and the changes in a home for views that follow it.

Triggers of the schema keep the rows of changes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import UnionType

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.text_format import closest_matches, cut
from jupyter_autotrain.errors import DamagedRowError, UnknownExperimentError
from jupyter_autotrain.store.database import Database


class StoreMixin:
    """A part of the store: some tables and the questions about them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._home = Home(database.path.parent)


def plain(text: str) -> str:
    """Return the text as UTF-8 can hold it: half a surrogate pair, as trials may send, becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


@contextmanager
def undamaged(row: str) -> Iterator[None]:
    """Raise a `DamagedRowError` that names the row where what it holds cannot be read, as after a flipped byte."""
    try:
        yield
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamagedRowError(
            f"The store is damaged: {row} cannot be read ({cut(str(error), 80)}).",
            "What this package wrote there was expected.",
            "Run '%autotrain doctor --repair': it keeps what can be read.",
        ) from None


def check_types(*values: tuple[object, type | UnionType]) -> None:
    """Make sure that columns hold what was written: a flipped byte may turn a text into bytes, a number into a text.

    Raises:
        TypeError: One holds something else.
    """
    for value, kind in values:
        if not isinstance(value, kind):
            raise TypeError(f"{type(value).__name__} in place of {kind}")


def key_of(connection: sqlite3.Connection, experiment_id: str) -> int:
    """Return the row key of an experiment.

    Raises:
        UnknownExperimentError: There is none with that id.
    """
    row = connection.execute("SELECT key FROM experiments WHERE id = ?", (experiment_id,)).fetchone()
    if row is None:
        raise unknown(connection, experiment_id)
    return int(row[0])


def unknown(connection: sqlite3.Connection, reference: str) -> UnknownExperimentError:
    """Return the error for a reference that names nothing, with the nearest names."""
    rows = connection.execute("SELECT name FROM experiments GROUP BY name ORDER BY max(key) DESC")
    names = [name for (name,) in rows if isinstance(name, str)]  # a flipped byte may have made one bytes
    near = closest_matches(reference.partition("@")[0], names, cutoff=0.5) or names[:3]
    return UnknownExperimentError(
        f"No experiment has the name {cut(reference, 80)!r}.",
        f"Near or recent names: {', '.join(near)}." if near else "There is no experiment yet.",
        "List them all with '%autotrain ls'.",
    )


@dataclass(frozen=True, slots=True)
class Change:
    """The newest change of a kind in an experiment: `state`, `metrics` or `notes`; one that was deleted has `state`.

    `id` only grows: whoever has seen all changes up to an id misses none and sees none twice.
    """

    id: int
    experiment_id: str
    kind: str


class ChangeTable(StoreMixin):
    """The newest changes, one per experiment and kind, whoever made them."""

    def changes(self, after_id: int = 0, limit: int = 1000) -> list[Change]:
        """Return the changes whose id is above `after_id`, oldest first, at most `limit`."""
        query = "SELECT id, experiment_id, kind FROM changes WHERE id > ? ORDER BY id LIMIT ?"
        with self._database.read() as connection:
            return [Change(*row) for row in connection.execute(query, (after_id, limit))]

    def last_change_id(self) -> int:
        """Return the id of the newest change; 0 where there is none."""
        with self._database.read() as connection:
            return int(connection.execute("SELECT coalesce(max(id), 0) FROM changes").fetchone()[0])


def note_changes(connection: sqlite3.Connection, experiment_ids: Collection[str], kind: str) -> None:
    """Give the changes of a kind new ids, inside the transaction that makes them."""
    rows = [(experiment_id, kind) for experiment_id in sorted(experiment_ids)]
    connection.executemany("DELETE FROM changes WHERE experiment_id = ? AND kind = ?", rows)
    connection.executemany("INSERT INTO changes (experiment_id, kind) VALUES (?, ?)", rows)

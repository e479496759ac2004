"""What the sections of the store share."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from types import UnionType

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.matching import closest_matches
from jupyter_autotrain.core.text_format import cut
from jupyter_autotrain.errors import DamagedRowError, UnknownExperimentError
from jupyter_autotrain.store.database import Database


class StoreMixin:
    """A part of the store: some tables and the questions about them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._home = Home(database.path.parent)


def plain(text: str) -> str:
    """The text as UTF-8 can hold it: half a surrogate pair, as trials may send, becomes a question mark."""
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
    """The row key of an experiment.

    Raises:
        UnknownExperimentError: There is none with that id.
    """
    row = connection.execute("SELECT key FROM experiments WHERE id = ?", (experiment_id,)).fetchone()
    if row is None:
        raise unknown(connection, experiment_id)
    return int(row[0])


def unknown(connection: sqlite3.Connection, reference: str) -> UnknownExperimentError:
    """The error for a reference that names nothing, with the nearest names."""
    rows = connection.execute("SELECT name FROM experiments GROUP BY name ORDER BY max(key) DESC")
    names = [name for (name,) in rows if isinstance(name, str)]  # a flipped byte may have made one bytes
    near = closest_matches(reference.partition("@")[0], names, cutoff=0.5) or names[:3]
    return UnknownExperimentError(
        f"No experiment has the name {cut(reference, 80)!r}.",
        f"Near or recent names: {', '.join(near)}." if near else "There is no experiment yet.",
        "List them all with '%autotrain ls'.",
    )

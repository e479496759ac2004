"""What people call an experiment: a name, `name@N`, the beginning of an id, or how far back it lies."""

from __future__ import annotations

import sqlite3

from jupyter_autotrain.core.origin import Origin
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.errors import UnknownExperimentError
from jupyter_autotrain.store.experiment_records import records
from jupyter_autotrain.store.mixin import plain, unknown


def look_up(connection: sqlite3.Connection, reference: str, origin: Origin | None) -> list[ExperimentRecord]:
    """What a reference may mean in this notebook; several when the beginning of an id is not unique."""
    mine, values = of_origin(origin)
    if places := offset_from_newest(reference):
        return records(connection, f"WHERE {mine} ORDER BY key DESC LIMIT 1 OFFSET ?", (*values, places - 1))
    newest = "WHERE name = ? AND {} ORDER BY key DESC LIMIT 1"
    if by_name := records(connection, newest.format(mine), (reference, *values)):
        return by_name
    if by_name := records(connection, newest.format("1"), (reference,)):
        return by_name
    name, at, version = reference.rpartition("@")
    if at and version.isdecimal():
        return records(connection, "WHERE name = ? AND version = ?", (name, _number(version)))
    return records(connection, "WHERE ? != '' AND substr(id, 1, ?) = ?", (reference, len(reference), reference))


def _number(digits: str) -> int:
    """A number that SQLite can hold; no experiment has a larger one."""
    return int(digits) if len(digits) <= 18 else 10**18


def offset_from_newest(reference: str) -> int:
    """How far back a reference counts: 1 for `-1` and `_` (the newest), 2 for `-2` ...; 0 for a name or an id."""
    if reference == "_":
        return 1
    digits = reference[1:]
    if not reference.startswith("-") or not digits.isdecimal():
        return 0
    return max(_number(digits), 1)


def of_origin(origin: Origin | None) -> tuple[str, tuple[str, ...]]:
    """The condition for experiments of this notebook."""
    if origin is None:
        return "1", ()
    if origin.notebook:
        same_session = "notebook = '' AND session = ? AND session != ''"
        return f"(notebook = ? OR ({same_session}))", (plain(origin.notebook), origin.session)
    return "(session = ? AND session != '')", (origin.session,)


def not_found(connection: sqlite3.Connection, reference: str, origin: Origin | None) -> UnknownExperimentError:
    """The error for a reference that names nothing, with what may have been meant."""
    newest = records(connection, "ORDER BY key DESC LIMIT 1", ()) if origin and offset_from_newest(reference) else []
    if not newest:
        return unknown(connection, reference)
    mine, values = of_origin(origin)
    many = connection.execute(f"SELECT count(*) FROM experiments AS e WHERE {mine}", values).fetchone()[0]  # noqa: S608 - own text
    has = f"only {count(many, 'experiment')}, so {reference} names none" if many else "no experiment yet"
    return UnknownExperimentError(
        f"This notebook has submitted {has}.",
        f"The newest of all is {newest[0].label}, from {newest[0].spec.origin.label}.",
        f"Give its name, {newest[0].label}, if you mean that one; list all with '%autotrain ls'.",
    )

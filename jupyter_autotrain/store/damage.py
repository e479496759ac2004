"""Repairs of a store's damaged file: a header that SQLite refuses, and rows that mean nothing.

Copies of a store that SQLite refuses as a whole, with a repaired header, so that the rest can be read. A flipped byte
in the header and a file cut short make SQLite refuse everything. The header holds nothing that is not known: the
first copy gets a new one. Where the list of tables is damaged, the second copy gets that of a new store, whose tables
begin on the same pages. Source of the layout: https://www.sqlite.org/fileformat2.html
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from jupyter_autotrain.agent.json import from_json
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.store.database import migrate

_STATES = ", ".join(f"'{state.value}'" for state in TrialState)
_EMPTY = {"params": "'{}'", "placement": "'[]'", "ref": "NULL"}


def repair_rows(target: sqlite3.Connection) -> dict[str, str]:
    """Give every row what can be read; a trial's state comes from its newest move, else it is LOST.

    Returns:
        What was done, in words, by table.
    """
    unreadable = [key for key, spec in target.execute("SELECT key, spec FROM experiments") if not _is_spec(spec)]
    target.executemany("DELETE FROM experiments WHERE key = ?", [(key,) for key in unreadable])
    moves = target.execute(f"DELETE FROM moves WHERE state NOT IN ({_STATES})").rowcount  # noqa: S608 - own states
    target.execute(f"DELETE FROM end_decisions WHERE state NOT IN ({_STATES})")  # noqa: S608 - own states
    states = target.execute(
        "UPDATE trials SET state = coalesce((SELECT state FROM moves AS m WHERE m.experiment = trials.experiment "  # noqa: S608 - own states
        f"AND m.number = trials.number ORDER BY id DESC LIMIT 1), 'LOST') WHERE state NOT IN ({_STATES})"
    ).rowcount
    for table in ("trials", "moves", "end_decisions", "block_reasons"):
        target.execute(f"UPDATE {table} SET reason = '' WHERE typeof(reason) != 'text'")  # noqa: S608 - own names
    target.execute("UPDATE moves SET placement = NULL WHERE placement IS NOT NULL AND NOT json_valid(placement)")
    values = sum(_empty(target, column, empty) for column, empty in _EMPTY.items())
    done: dict[str, str] = {}
    if unreadable:
        done["experiments"] = f"{len(unreadable)} with a specification that cannot be read"
    if moves:
        done["moves"] = f"{moves} with an unknown state"
    if states or values:
        done["trials"] = f"{states} with an unknown state, {values} unreadable values"
    return done


def _empty(target: sqlite3.Connection, column: str, empty: str) -> int:
    kind = list if column == "placement" else dict
    rows = target.execute(f"SELECT experiment, number, {column} FROM trials WHERE {column} IS NOT NULL")  # noqa: S608 - own names
    bad = [(key, number) for key, number, text in rows.fetchall() if not _is_json(text, kind)]
    query = f"UPDATE trials SET {column} = {empty} WHERE experiment = ? AND number = ?"  # noqa: S608 - own names
    target.executemany(query, bad)
    return len(bad)


def _is_json(text: object, kind: type) -> bool:
    try:
        return isinstance(json.loads(str(text)), kind)
    except (ValueError, RecursionError):
        return False


def _is_spec(text: object) -> bool:
    try:
        return isinstance(from_json(ExperimentSpec, json.loads(str(text))), ExperimentSpec)
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


PAGE_BYTES: Final = 4096
_HEADER_BYTES: Final = 100  # of the file, before the header of the first page
_INTERIOR: Final = 5
_PARTS: Final = ("", "-wal", "-shm")


def copies_with_new_header(path: Path) -> Iterator[Path]:
    """One copy after the other, each removed before the next.

    Raises:
        OSError: A copy cannot be made.
    """
    copy = path.with_name(f"{path.name}.copy")
    model = path.with_name(f"{path.name}.model")
    try:
        for schema in ({}, _schema_pages(model)):
            _copy(path, copy)
            _write_pages(copy, schema)
            _write_header(copy)
            yield copy
    finally:
        for part in _PARTS:
            Path(f"{copy}{part}").unlink(missing_ok=True)
        model.unlink(missing_ok=True)


def _copy(path: Path, copy: Path) -> None:
    """Copy file and log by another process: this one would give up its locks on them (see `database`)."""
    for part in _PARTS:
        Path(f"{copy}{part}").unlink(missing_ok=True)
    for part in ("", "-wal"):
        if Path(f"{path}{part}").exists():
            done = subprocess.run(
                ["cp", "-p", "--", f"{path}{part}", f"{copy}{part}"], capture_output=True, check=False
            )
            if done.returncode:
                raise OSError(done.returncode, done.stderr.decode(errors="replace").strip(), str(copy))


def _write_pages(copy: Path, pages: Mapping[int, bytes]) -> None:
    with copy.open("r+b") as file:
        for number, page in pages.items():
            file.seek((number - 1) * PAGE_BYTES)
            file.write(page)


def _write_header(copy: Path) -> None:
    with copy.open("r+b") as file:
        page = bytearray(file.read(PAGE_BYTES).ljust(PAGE_BYTES, b"\0"))
        pages = max(1, -(-copy.stat().st_size // PAGE_BYTES))
        page[:24] = b"SQLite format 3\0" + PAGE_BYTES.to_bytes(2) + bytes((2, 2, 0, 64, 32, 32))
        page[28:32] = pages.to_bytes(4)
        page[32:40] = bytes(8)  # no free pages: nothing is written to the copy
        page[44:48] = (4).to_bytes(4)
        page[52:56] = bytes(4)
        page[56:60] = (1).to_bytes(4)
        page[64:68] = bytes(4)
        page[72:92] = bytes(20)
        page[92:96] = page[24:28]
        file.seek(0)
        file.write(page)
        file.truncate(pages * PAGE_BYTES)


def _schema_pages(model: Path) -> dict[int, bytes]:
    """Return the pages, by number, that list the tables of a store in which nothing is."""
    model.unlink(missing_ok=True)
    with closing(sqlite3.connect(model, isolation_level=None)) as connection:
        migrate(connection, model)
    data = model.read_bytes()
    pages = [data[start : start + PAGE_BYTES] for start in range(0, len(data), PAGE_BYTES)]
    return {number: pages[number - 1] for number in [1, *_children(pages[0])]}


def _children(page: bytes) -> list[int]:
    """Return the pages below the first one, where the list of tables is longer than that page.

    Its b-tree has two levels.
    """
    if page[_HEADER_BYTES] != _INTERIOR:
        return []
    cells = int.from_bytes(page[_HEADER_BYTES + 3 : _HEADER_BYTES + 5])
    first = _HEADER_BYTES + 12
    places = [int.from_bytes(page[at : at + 2]) for at in range(first, first + 2 * cells, 2)]
    return [int.from_bytes(page[at : at + 4]) for at in [*places, _HEADER_BYTES + 8]]

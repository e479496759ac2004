"""Saving what can be read of a damaged store into a new file.

Each table is read in the order of its rows up to the damage, then from the other end, then experiment by experiment
through the indexes, which lead around damaged pages. What refers to a lost experiment or trial goes with it. The
damaged file is kept next to the new one.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
import time
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from jupyter_autotrain.errors import StoreError
from jupyter_autotrain.store.damage import copies_with_new_header, repair_rows
from jupyter_autotrain.store.database import check_version, make_private_file, migrate
from jupyter_autotrain.store.failures import explained

_MOST_LOOKUPS: Final = 200_000
_MOST_MISSES: Final = 2_000  # more rows than damaged pages between two whole ones may hold
_LOGS: Final = ("-wal", "-shm", "-journal")
_TIMEOUT_S: Final = 10.0
_OF_EXPERIMENTS: Final = ("trials", "experiment_decisions", "unreachable_nodes", "annotations")
_OF_TRIALS: Final = ("moves", "cursors", "series", "notes", "end_decisions", "block_reasons")


@dataclass(slots=True)
class Repair:
    """The result of a repair.

    Attributes:
        kept_at: Where the damaged file is now.
        saved: Rows by table.
        damaged: What SQLite said, by table that could not be read whole.
        dropped: Rows by table that were read and refer to what was lost.
        refused: What SQLite said of the file as a whole, where only a copy with a new header could be read.
    """

    kept_at: Path
    saved: dict[str, int] = field(default_factory=dict)
    damaged: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    refused: str = ""


def repair(path: Path) -> Repair:
    """Replace a damaged store by what can be read of it. The caller keeps managers and submitters away meanwhile.

    Raises:
        OutdatedError: A newer version of this package has changed its schema.
        StoreError: Another process writes it, or the disk cannot hold a second one; nothing was changed.
    """
    kept_at = _free_name(path)
    fresh = path.with_name(f"{path.name}.repaired")
    connection = sqlite3.connect(path, timeout=_TIMEOUT_S, isolation_level=None)
    with explained(path, _TIMEOUT_S), closing(connection) as source:
        with suppress(sqlite3.DatabaseError):  # damaged: nothing says that it is newer
            check_version(source, path)
        _hold(source, path)
        report = _salvage(source, fresh, kept_at)
        if report.damaged and not report.saved["experiments"]:
            report = _salvage_copies(path, fresh, report)
        _exchange(path, fresh, kept_at)
    return report


def _hold(source: sqlite3.Connection, path: Path) -> None:
    """Keep others from writing meanwhile, where the damage lets us."""
    try:
        source.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise StoreError(
                f"{path} is being written by another process.",
                f"It was expected to be free within {_TIMEOUT_S:g} s.",
                "Close the notebooks and scripts that use this home, then repair again.",
            ) from None
    except sqlite3.DatabaseError:
        pass  # so damaged that it cannot even be locked


def _salvage(source: sqlite3.Connection, fresh: Path, kept_at: Path) -> Repair:
    report = Repair(kept_at)
    for old in (fresh, *(Path(f"{fresh}{log}") for log in _LOGS)):
        old.unlink(missing_ok=True)
    make_private_file(fresh)
    with closing(sqlite3.connect(fresh, isolation_level=None)) as target:
        migrate(target, fresh)
        target.execute("BEGIN")
        for table in _tables(target):
            _copy(source, target, table, report)
        for table, found in repair_rows(target).items():
            report.damaged.setdefault(table, found)
        _drop_orphans(target, report)
        _number_names(target)
        target.execute("COMMIT")
        report.saved = {table: _count(target, table) for table in _tables(target)}
    return report


def _salvage_copies(path: Path, fresh: Path, report: Repair) -> Repair:
    """SQLite refuses the file as a whole: see whether it reads a copy with a new header."""
    for copy in copies_with_new_header(path):
        with closing(sqlite3.connect(copy, isolation_level=None)) as source:
            found = _salvage(source, fresh, report.kept_at)
        if found.saved["experiments"]:
            found.refused = next(iter(report.damaged.values()))
            return found
    return report


def _tables(connection: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
    return [name for (name,) in connection.execute(query)]


def _count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608 - own table names


def _copy(source: sqlite3.Connection, target: sqlite3.Connection, table: str, report: Repair) -> None:
    columns = [row[1] for row in target.execute(f"PRAGMA table_info({table})")]
    there = _columns(source, table)
    shared = [column for column in columns if not there or column in there]
    places = ", ".join("?" * len(shared))
    insert = f"INSERT OR IGNORE INTO {table} ({', '.join(shared)}) VALUES ({places})"  # noqa: S608 - own names
    for row in _rows(source, target, table, shared, report):
        with suppress(sqlite3.IntegrityError):  # a row whose bytes no longer fit its table
            target.execute(insert, row)


def _columns(source: sqlite3.Connection, table: str) -> set[str]:
    with suppress(sqlite3.DatabaseError):
        return {row[1] for row in source.execute(f"PRAGMA table_info({table})")}
    return set()


def _rows(
    source: sqlite3.Connection, target: sqlite3.Connection, table: str, columns: list[str], report: Repair
) -> Iterator[tuple[object, ...]]:
    """All rows that can be read; some come twice when the table is damaged."""
    keys = [row[1] for row in target.execute(f"PRAGMA table_info({table})") if row[5]]
    select = f"SELECT {', '.join(columns)} FROM {table}"  # noqa: S608 - own names
    fault = yield from _read(source, f"{select} NOT INDEXED")
    if not fault:
        return
    report.damaged[table] = fault
    if not _columns(source, table):
        return  # SQLite does not know the table, so no other way leads to its rows
    yield from _read(source, f"{select} ORDER BY {', '.join(f'{key} DESC' for key in keys)}")
    if len(keys) == 1:
        yield from _by_number(source, target, table, keys[0], select)
    if "experiment" in columns:
        for (key,) in target.execute("SELECT key FROM experiments").fetchall():
            yield from _read(source, f"{select} WHERE experiment = {int(key)}")


def _by_number(
    source: sqlite3.Connection, target: sqlite3.Connection, table: str, key: str, select: str
) -> Iterator[tuple[object, ...]]:
    """Rows between damaged pages and past the last one, each looked up by its number, which leads around them."""
    saved = target.execute(f"SELECT {key} FROM {table}").fetchall()  # noqa: S608 - own names
    known = {number for (number,) in saved if isinstance(number, int)}
    first = min(known, default=1)
    last = max(known, default=0)
    if last - first > _MOST_LOOKUPS:
        return
    misses = 0
    for number in itertools.count(max(1, first - _MOST_MISSES)):
        found = [] if number in known else list(_read(source, f"{select} WHERE {key} = {number}"))
        yield from found
        misses = 0 if found or number <= last else misses + 1
        if misses == _MOST_MISSES:
            return


def _read(source: sqlite3.Connection, query: str) -> Generator[tuple[object, ...], None, str]:
    """Rows up to the first damaged page; returns what SQLite said of it, or ""."""
    try:
        yield from source.execute(query)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        return str(error)
    return ""


def _drop_orphans(target: sqlite3.Connection, report: Repair) -> None:
    for table in _OF_EXPERIMENTS:
        orphans = f"DELETE FROM {table} WHERE experiment NOT IN (SELECT key FROM experiments)"  # noqa: S608 - own names
        report.dropped[table] = target.execute(orphans).rowcount
    for table in _OF_TRIALS:
        orphans = f"DELETE FROM {table} WHERE (experiment, number) NOT IN (SELECT experiment, number FROM trials)"  # noqa: S608 - own names
        report.dropped[table] = target.execute(orphans).rowcount
    orphans = "DELETE FROM chunks WHERE series NOT IN (SELECT id FROM series)"
    report.dropped["chunks"] = target.execute(orphans).rowcount
    report.dropped = {table: count for table, count in report.dropped.items() if count}


def _number_names(target: sqlite3.Connection) -> None:
    """Give no version number twice, also when the table of names was lost."""
    target.execute(
        "INSERT INTO names (name, version) SELECT name, max(version) FROM experiments WHERE true GROUP BY name "
        "ON CONFLICT (name) DO UPDATE SET version = max(version, excluded.version)"
    )


def _exchange(path: Path, fresh: Path, kept_at: Path) -> None:
    """Put the new file where the damaged one was; there is a file at the path at every instant."""
    os.link(path, kept_at)
    for log in _LOGS:
        with suppress(FileNotFoundError):
            Path(f"{path}{log}").rename(f"{kept_at}{log}")
    fresh.replace(path)


def _free_name(path: Path) -> Path:
    day = time.strftime("%Y-%m-%d")
    names = (path.with_name(f"{path.name}.damaged-{day}-{number}") for number in range(1, 1 << 20))
    return next(name for name in names if not name.exists())

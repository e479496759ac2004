"""Copies of a store that SQLite refuses as a whole, with a repaired header, so that the rest can be read.

A flipped byte in the header and a file cut short make SQLite refuse everything. The header holds nothing that is not
known: the first copy gets a new one. Where the list of tables is damaged, the second copy gets that of a new
store, whose tables begin on the same pages. Source of the layout: https://www.sqlite.org/fileformat2.html
"""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from jupyter_autotrain.store.migration import migrate

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
    """The pages, by number, that list the tables of a store in which nothing is."""
    model.unlink(missing_ok=True)
    with closing(sqlite3.connect(model, isolation_level=None)) as connection:
        migrate(connection, model)
    data = model.read_bytes()
    pages = [data[start : start + PAGE_BYTES] for start in range(0, len(data), PAGE_BYTES)]
    return {number: pages[number - 1] for number in [1, *_children(pages[0])]}


def _children(page: bytes) -> list[int]:
    """The pages below the first one, where the list of tables is longer than that page: its b-tree has two levels."""
    if page[_HEADER_BYTES] != _INTERIOR:
        return []
    cells = int.from_bytes(page[_HEADER_BYTES + 3 : _HEADER_BYTES + 5])
    first = _HEADER_BYTES + 12
    places = [int.from_bytes(page[at : at + 2]) for at in range(first, first + 2 * cells, 2)]
    return [int.from_bytes(page[at : at + 4]) for at in [*places, _HEADER_BYTES + 8]]

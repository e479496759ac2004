"""What a trial reads and its code does not hold: the sources of the header's section `data:`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

FETCH_LIMIT_BYTES = 100_000_000  # of what a trial leaves elsewhere, copied at its end where the header says nothing


class DataKind(StrEnum):
    """How data gets to where a trial runs."""

    COPY = "copy"  # a file or folder here, sent once per content
    PATH = "path"  # there already, such as shared storage
    URL = "url"  # fetched by the trial's machine, once per content


@dataclass(frozen=True, slots=True)
class DataSource:
    """One entry of `data:`; in the cell `data.NAME` is where it lies.

    Attributes:
        name: Its name in the cell.
        path: Of kind PATH: where it lies on every node; may begin with `~`.
        url: Of kind URL: where it is fetched from.
        sha256: Of kind URL: the digest of the file. Of kind COPY: that of all its files (`folder_digest`).
        file_name: The last part of its path where it is copied or fetched to.
        size_bytes: Of kind COPY.
        work_path: Of kind COPY: its path below the notebook's folder, where a trial finds a link to it; or "".
        local_path: Of kind COPY: where it lies on the submitter's machine; "" in a `TrialSpec`.
    """

    name: str
    kind: DataKind
    path: str = ""
    url: str = ""
    sha256: str = ""
    file_name: str = ""
    size_bytes: int = 0
    work_path: str = ""
    local_path: str = ""


def folder_digest(files: Iterable[tuple[str, str, bool]], folders: Iterable[str] = ()) -> str:
    """The SHA-256 of everything in a folder.

    Args:
        files: Of each file: its path in the folder, its SHA-256, and whether it may be executed.
        folders: The paths of the folders in it.
    """
    lines = [f"{path}\0{sha256}\0{int(is_executable)}\n" for path, sha256, is_executable in files]
    return hashlib.sha256("".join([*lines, *folders]).encode()).hexdigest()

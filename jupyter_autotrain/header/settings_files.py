"""Files of settings, read as YAML; a file is read again only when it has changed."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from jupyter_autotrain.header.document import LIMIT_BYTES, Document
from jupyter_autotrain.header.faults import Fault, SourceLocation
from jupyter_autotrain.header.yaml_parts import load


def existing(path: Path) -> Path | None:
    """The path, if a file is there."""
    try:
        return path if path.is_file() else None
    except OSError:
        return None


def read_file(path: Path, source: str, requested_at: SourceLocation = SourceLocation()) -> Document:  # noqa: B008 - frozen
    """Settings of a file; what is wrong with it is a fault, at `requested_at` when it cannot be read."""
    try:
        state = path.stat()
        found = _read_cached(path, source, state.st_mtime_ns, state.st_size, state.st_ino)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        unread = f"{source} cannot be read: {reason}"
        return Document(faults=[Fault(unread, "expected a YAML file", "check its path", requested_at)])
    return Document(dict(found.data), dict(found.locations), list(found.faults))


@lru_cache(maxsize=8)
def _read_cached(path: Path, source: str, *_changed: int) -> Document:
    """A file's settings, while nothing has changed it: YAML is slow, and a submit reads three files."""
    rows = [(number, row.rstrip("\r")) for number, row in enumerate(_text(path).split("\n"), 1)]
    return load([(number, "" if row.rstrip() == "---" else row) for number, row in rows], source, path.parent)


def _text(path: Path) -> str:
    """The text of a file; never more than a header may have, and nothing that is no file, such as a pipe."""
    if not path.is_file():
        raise OSError(None, "not a regular file")
    with path.open("rb") as file:
        data = file.read(LIMIT_BYTES + 1)
    return data.decode("utf-8-sig", errors="replace" if len(data) > LIMIT_BYTES else "strict")

"""Exports of labels: unpacking them, and what a run card says of them."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_MOST_JSON_BYTES: Final = 1 << 30


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack an archive beside it, or take it as it is, and return the folder of what was in it; it is removed."""
    target = folder / "export"
    target.mkdir()
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(target)  # leads nowhere else: zipfile drops what would
        archive.unlink()
    else:
        archive.rename(target / "labels.json" if archive.read_bytes()[:1] in {b"[", b"{"} else target / "labels.txt")
    return target


def describe(path: Path) -> tuple[str, tuple[tuple[str, int], ...]]:
    """Return the license that an export names, else "", and how many images, annotations and files there are."""
    counts: Counter[str] = Counter()
    licenses: list[str] = []
    for content in _json_files(path):
        if isinstance(content, dict) and "annotations" in content:
            counts["images"] += len(content.get("images", []))
            counts["annotations"] += len(content["annotations"])
            licenses += [str(one.get("name")) for one in content.get("licenses", []) if one.get("name")]
        elif isinstance(content, list) and content and isinstance(content[0], dict) and "annotations" in content[0]:
            counts["tasks"] += len(content)
            counts["annotations"] += sum(len(task.get("annotations", [])) for task in content)
    if not counts:
        counts["files"] = sum(one.is_file() for one in path.rglob("*")) if path.is_dir() else 1
    return ", ".join(dict.fromkeys(licenses)), tuple(counts.items())


def _json_files(path: Path) -> Iterator[object]:
    for one in sorted(path.rglob("*.json")) if path.is_dir() else ():
        if one.stat().st_size <= _MOST_JSON_BYTES:
            with suppress(ValueError):
                yield json.loads(one.read_bytes())

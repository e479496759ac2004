"""A capture on disk: `main.py`, `data/<name>.pkl`, `files/...` and `bundle.json`, durable once written."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

from jupyter_autotrain.capture.result import Capture
from jupyter_autotrain.core.json import from_json, to_json
from jupyter_autotrain.core.spec import Bundle
from jupyter_autotrain.errors import CaptureError

SCRIPT, MANIFEST, DATA, FILES = "main.py", "bundle.json", "data", "files"
_COPY_BYTES = 1 << 20


def write_bundle(capture: Capture, directory: Path, *, python: str = sys.executable) -> Bundle:
    """Write a capture so that it survives a crash; folders 0700, files 0600.

    Args:
        capture: What to write.
        directory: Where; made if missing.
        python: The interpreter that workers shall use.

    Returns:
        What was written; `bundle.json` holds the same.
    """
    _make(directory)
    digests: dict[str, tuple[str, int]] = {}
    digests[SCRIPT] = _write(directory / SCRIPT, capture.script.encode())
    for name, content in sorted(capture.data.items()):
        place = f"{DATA}/{name}.pkl"
        digests[place] = _write(directory / place, content)
    for name, source in sorted(capture.files.items()):
        place = f"{FILES}/{name}"
        digests[place] = _copy(source, directory / place)
    bundle = Bundle(
        script=SCRIPT,
        sha256=_digest(digests),
        captured=capture.captured,
        files=tuple(sorted(capture.files)),
        size_bytes=sum(size for _, size in digests.values()),
        python=python,
        source_map=capture.source_map,
    )
    _write(directory / MANIFEST, json.dumps(to_json(bundle), indent=1).encode())
    for folder in sorted({directory, *(directory / place for place in _folders(digests))}):
        _sync_folder(folder)
    return bundle


def read_bundle(directory: Path) -> Bundle:
    """Read `bundle.json`.

    Raises:
        CaptureError: It is not there, or damaged.
    """
    try:
        return from_json(Bundle, json.loads((directory / MANIFEST).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CaptureError(
            f"The code of this experiment cannot be read: {error}.",
            f"{directory / MANIFEST} was expected, as it was written at submit.",
            "Look whether the folder was removed; run '%autotrain doctor'.",
        ) from None


def _digest(files: dict[str, tuple[str, int]]) -> str:
    lines = "".join(f"{digest}  {place}\n" for place, (digest, _) in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def _folders(files: dict[str, tuple[str, int]]) -> set[str]:
    return {str(parent) for place in files for parent in Path(place).parents}


def _make(folder: Path) -> None:
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _write(path: Path, content: bytes) -> tuple[str, int]:
    _make(path.parent)
    with open(path, "wb", opener=_private) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return hashlib.sha256(content).hexdigest(), len(content)


def _copy(source: Path, path: Path) -> tuple[str, int]:
    _make(path.parent)
    digest = hashlib.sha256()
    with source.open("rb") as original, open(path, "wb", opener=_private) as file:
        while part := original.read(_COPY_BYTES):
            digest.update(part)
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
        size = file.tell()
    shutil.copystat(source, path)
    path.chmod(0o600)
    return digest.hexdigest(), size


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

"""A capture on disk: `main.py`, `data/<name>.pkl`, `files/...`, `plan.json`, `bundle.json`, durable once written."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from jupyter_autotrain.agent import durable
from jupyter_autotrain.agent.files import private_opener
from jupyter_autotrain.agent.json import JsonObject, from_json, to_json
from jupyter_autotrain.capture.result import Capture
from jupyter_autotrain.core.spec import Bundle
from jupyter_autotrain.errors import CaptureError

SCRIPT = "main.py"
MANIFEST = "bundle.json"
DATA = "data"
FILES = "files"
PLAN = "plan.json"
_PART_BYTES = 1 << 20


def write_bundle(
    capture: Capture,
    directory: Path,
    progress: Callable[[int, int], object] = lambda _written, _total: None,
    *,
    python: str = sys.executable,
    cwd: str = "",
    plan: JsonObject | None = None,
) -> Bundle:
    """Write a capture so that it survives a crash; folders 0700, files 0600.

    Files that trials only read are 0400: trials get links to them, and copies of the others.

    Args:
        capture: What to write.
        directory: Where; made if missing.
        progress: Called with the bytes written so far and those to write; what it raises ends the writing.
        python: The interpreter that workers shall use.
        cwd: The folder the notebook worked in, or "".
        plan: How its model was planned to be split; kept beside the code.

    Returns:
        What was written; `bundle.json` holds the same.
    """
    _make(directory)
    writer = _Writer(directory, _size_bytes(capture), progress)
    writer.write(SCRIPT, capture.script.encode())
    for name, content in sorted(capture.data.items()):
        writer.write(f"{DATA}/{name}.pkl", content)
    for name, source in sorted(capture.files.items()):
        writer.copy(source, f"{FILES}/{name}", 0o600 if name in capture.written else 0o400)
    for name in capture.folders:
        _make(directory / FILES / name)
    if plan is not None:
        writer.write(PLAN, json.dumps(plan).encode())
    digests = writer.digests
    bundle = Bundle(
        script=SCRIPT,
        sha256=_digest(digests),
        captured=capture.captured,
        files=tuple(sorted(capture.files)),
        folders=capture.folders,
        size_bytes=sum(size for _, size in digests.values()),
        python=python,
        cwd=cwd,
        source_map=capture.source_map,
        differences=tuple(difference.line for difference in capture.differences),
        python_packages=capture.packages,
        python_version=capture.bundle.python_version,
    )
    writer.write(MANIFEST, json.dumps(to_json(bundle), indent=1).encode())
    folders = _folders((*digests, *(f"{FILES}/{name}/." for name in capture.folders)))
    for path in (*digests, *sorted(folders)):  # only now: the first does much of the work for all
        durable.sync_path(directory / path)
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
    lines = "".join(f"{digest}  {relative_path}\n" for relative_path, (digest, _) in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def _folders(files: Iterable[str]) -> set[str]:
    return {str(parent) for relative_path in files for parent in Path(relative_path).parents}


def _make(folder: Path) -> None:
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


class _Writer:
    """A writer of the files of a bundle, which syncs them and keeps their digests and sizes.

    Args:
        directory: The bundle.
        total_bytes: What there is to write.
        progress: See `write_bundle`.
    """

    def __init__(self, directory: Path, total_bytes: int, progress: Callable[[int, int], object]) -> None:
        self._directory = directory
        self._total_bytes = total_bytes
        self._progress = progress
        self._written_bytes = 0
        self.digests: dict[str, tuple[str, int]] = {}

    def write(self, relative_path: str, content: bytes) -> None:
        """Write a file."""
        whole = memoryview(content)
        self._write(relative_path, (whole[at : at + _PART_BYTES] for at in range(0, len(whole), _PART_BYTES)))

    def copy(self, source: Path, relative_path: str, mode: int) -> None:
        """Copy a file, with its times."""
        with source.open("rb") as original:
            self._write(relative_path, iter(lambda: original.read(_PART_BYTES), b""))
        shutil.copystat(source, self._directory / relative_path)
        (self._directory / relative_path).chmod(mode)

    def _write(self, relative_path: str, parts: Iterable[bytes | memoryview]) -> None:
        path = self._directory / relative_path
        digest = hashlib.sha256()
        _make(path.parent)
        with open(path, "wb", opener=private_opener) as file:
            for part in parts:
                digest.update(part)
                self._written_bytes += file.write(part)
                self._progress(self._written_bytes, self._total_bytes)
            self.digests[relative_path] = digest.hexdigest(), file.tell()


def _size_bytes(capture: Capture) -> int:
    data_bytes = sum(map(len, capture.data.values()))
    return len(capture.script.encode()) + data_bytes + sum(path.stat().st_size for path in capture.files.values())

"""Reading what `data:` names on this machine: every file's digest, made once for each content.

The digests of a file or folder are kept in the home. A file of the same path, size, time and inode is not read again,
unless it was changed so shortly before it was read that a later change might have left its time the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import from_json, to_json
from jupyter_autotrain.client.waiting import Progress
from jupyter_autotrain.core.data import DataFile, DataKind, DataManifest, DataSource, digest, is_executable, signature
from jupyter_autotrain.core.home import Home, make_private
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.errors import DataError

_SETTLED_NS = 2_000_000_000
_LARGE_BYTES = 1 << 20  # below it, reading a file again is as fast as anything


def read(
    home: Home, spec: ExperimentSpec, folder: Path, progress: Progress | None = None
) -> tuple[ExperimentSpec, dict[str, DataManifest]]:
    """Return the spec with the digests of its data, and by name what each copied entry holds.

    Args:
        home: Where digests are kept.
        spec: The experiment.
        folder: The folder that paths are relative to.
        progress: Shows how much has been read.

    Raises:
        DataError: A file is not there, or cannot be read.
    """
    manifests = {}
    sources = []
    for source in spec.data:
        if source.kind is DataKind.COPY:
            manifest = _read_source(home, source, folder, progress)
            manifests[source.name] = manifest
            sources.append(_described(source, manifest, folder))
        else:
            sources.append(source)
    return replace(spec, data=tuple(sources)), manifests


def write(manifest: DataManifest, path: Path) -> None:
    """Keep a manifest beside its experiment, synced."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    wire.write_atomically(str(path), json.dumps(to_json(manifest)).encode())


def _described(source: DataSource, manifest: DataManifest, folder: Path) -> DataSource:
    is_below = manifest.path != folder and manifest.path.is_relative_to(folder)
    return replace(
        source,
        work_path=str(manifest.path.relative_to(folder)) if is_below else "",
        local_path=str(manifest.path),
        file_name=manifest.name,
        sha256=manifest.sha256,
        size_bytes=manifest.size_bytes,
    )


def _read_source(home: Home, source: DataSource, folder: Path, progress: Progress | None) -> DataManifest:
    path = Path(os.path.abspath(folder / Path(source.local_path).expanduser()))  # noqa: PTH100 - links keep their names
    try:
        return _Reading(home, path, progress).manifest()
    except OSError as error:
        raise DataError(
            f"data.{source.name}: {error.filename or path} cannot be read: {error.strerror}.",
            "A file here that you may read, or a folder of such files.",
            "Correct `data:` in the header, or what lies there.",
        ) from error


class _Reading:
    """Reads one file or folder.

    Args:
        home: Where digests are kept.
        path: Where it lies.
        progress: Shows how much has been read.
    """

    def __init__(self, home: Home, path: Path, progress: Progress | None) -> None:
        self._home = home
        self._path = path
        self._progress = progress
        self._kept = home.digests / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"
        self._read_bytes = 0
        self._total_bytes = 0

    def manifest(self) -> DataManifest:
        """Return what it holds now.

        Raises:
            OSError: Something cannot be read.
        """
        known = self._known()
        begun_ns = time.time_ns()
        found = [(path, path.stat()) for path in _files(self._path)]
        self._total_bytes = sum(status.st_size for path, status in found if not _is_known(path, status, known))
        files = tuple(self._file(path, status, known) for path, status in found)
        folders = tuple(str(folder.relative_to(self._path.parent)) for folder in _folders(self._path))
        manifest = DataManifest(str(self._path.parent), self._path.name, files, folders, begun_ns)
        if self._total_bytes >= _LARGE_BYTES:
            self._keep(manifest)
        return manifest

    def _file(self, path: Path, status: os.stat_result, known: dict[str, DataFile]) -> DataFile:
        relative_path = str(path.relative_to(self._path.parent))
        if _is_known(path, status, known):
            return replace(known[str(path)], is_executable=is_executable(status))
        sha256 = digest(path, self._count)
        after = path.stat()
        if signature(after) != signature(status):
            raise OSError(0, "it was changed while it was read", str(path))
        return DataFile(relative_path, *signature(after), sha256, is_executable(after))

    def _count(self, size_bytes: int) -> None:
        self._read_bytes += size_bytes
        if self._progress is not None:
            self._progress.read_data(self._read_bytes, self._total_bytes)

    def _known(self) -> dict[str, DataFile]:
        """Return the files read before whose times are settled, by their full paths."""
        try:
            kept = from_json(DataManifest, json.loads(self._kept.read_bytes()))
            oldest_ns = kept.read_ns - _SETTLED_NS
            return {str(Path(kept.root, file.path)): file for file in kept.files if file.mtime_ns < oldest_ns}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def _keep(self, manifest: DataManifest) -> None:
        with suppress(OSError):  # a full disk: it is read again the next time
            make_private(self._home)
            write(manifest, self._kept)


def _is_known(path: Path, status: os.stat_result, known: dict[str, DataFile]) -> bool:
    file = known.get(str(path))
    return file is not None and file.signature == signature(status)


def _files(path: Path) -> Iterator[Path]:
    """Yield the files, sorted; a link counts as what it leads to.

    Raises:
        OSError: Something there is neither a file nor a folder, or cannot be read.
    """
    if not path.is_dir():
        yield path
        return
    for folder, _, names in _walk(path):
        for name in sorted(names):
            _check_file(folder / name)
            yield folder / name


def _folders(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        return
    yield path
    for folder, names, _ in _walk(path):
        yield from map(folder.joinpath, sorted(names))


def _walk(top: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Each folder with the names of its folders and of what else is in it."""
    for folder, names, files in os.walk(top, onerror=_raise, followlinks=True):
        names.sort()
        for name in names:
            _check_ends(Path(folder, name), top)
        yield Path(folder), names, files


def _raise(error: OSError) -> NoReturn:
    raise error


def _check_ends(folder: Path, top: Path) -> None:
    if not folder.is_symlink():
        return
    target = folder.resolve()
    above = (one for one in folder.parents if one.is_relative_to(top))
    if any(one.resolve().is_relative_to(target) for one in above):
        raise OSError(0, f"it is a link to {target}, in which it lies itself", str(folder))


def _check_file(path: Path) -> None:
    if path.is_file():
        return
    if path.is_symlink() and not path.exists():
        raise OSError(0, f"it is a link to {path.readlink()}, which is not there", str(path))
    raise OSError(0, "it is neither a file nor a folder", str(path))

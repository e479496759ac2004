"""The folder of what was fetched: one folder for each origin, in it one for each revision."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from jupyter_autotrain.client.fetching.exports import describe
from jupyter_autotrain.client.fetching.source import FetchSource, Told, fetch_source, located
from jupyter_autotrain.client.waiting import Progress
from jupyter_autotrain.core.data import DataSource
from jupyter_autotrain.core.home import Home, make_private
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.errors import AutotrainError, DataError


def fetch_all(
    home: Home, spec: ExperimentSpec, environ: Mapping[str, str], progress: Progress | None = None
) -> ExperimentSpec:
    """Return the spec with all that its `data:` names elsewhere on this machine, fetched where that has changed.

    Args:
        home: Where it is kept.
        spec: The experiment.
        environ: The submitter's variables, which say where servers are and who asks.
        progress: Shows how much has come.

    Raises:
        DataError: It cannot be fetched.
        MissingExtraError: The library that reads it is not installed.
        AutotrainError: There is no address or token of a server.
    """
    sources = [source if source.origin is None else _fetched(home, source, environ, progress) for source in spec.data]
    return replace(spec, data=tuple(sources))


def _fetched(home: Home, source: DataSource, environ: Mapping[str, str], progress: Progress | None) -> DataSource:
    assert source.origin is not None
    origin = located(source.origin, environ)
    try:
        with fetch_source(origin, environ) as place:
            told = partial(progress.fetched, source.name) if progress else _tell_nobody
            return _from(home, replace(source, origin=origin), place, told)
    except AutotrainError:
        raise
    except Exception as error:  # whatever the library of the place raises
        where = f"{origin.kind} at {origin.server}" if origin.server else origin.kind
        code = getattr(error, "status_code", None) or getattr(error, "status", None)
        why = f"HTTP {code}" if code else f"{type(error).__name__}: {error}".splitlines()[0]
        raise DataError(
            f"data.{source.name}: {where} does not give {origin.address}: {why}",
            "A place that answers, and leave to read there.",
            "Correct `data:`, or your access, then submit again.",
        ) from error


def _tell_nobody(size_bytes: int, total_bytes: int) -> None:
    """Show nothing."""


def _from(home: Home, source: DataSource, place: FetchSource, told: Told) -> DataSource:
    origin = source.origin
    assert origin is not None
    if origin.server:
        told(0, 0)  # it may have to export all before it can say its revision
    revision = place.revision(origin)
    key = "\0".join((origin.kind, origin.server, origin.address, origin.format))
    folder = home.fetched / hashlib.sha256(key.encode()).hexdigest()[:16]
    kept = folder / revision
    make_private(home)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not kept.is_dir():
        with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder) as made:
            place.fetch(origin, Path(made), told)
            _keep(Path(made), kept)
    (path,) = kept.iterdir()
    license_, counts = describe(path)
    described = replace(origin, revision=revision, counts=counts, license=origin.license or license_)
    return replace(source, local_path=str(path), origin=described)


def _keep(made: Path, kept: Path) -> None:
    """Give what was fetched its name; another submission may have been first."""
    inner = made / "revision"
    inner.mkdir()
    for one in [*made.iterdir()]:
        if one != inner:
            one.rename(inner / one.name)
    try:
        os.rename(inner, kept)  # noqa: PTH104 - Path.rename says the same
    except OSError:
        if not kept.is_dir():
            raise


def unused(home: Home, records: Iterable[ExperimentRecord]) -> Iterator[Path]:
    """Yield the revisions that no experiment was submitted with."""
    used = {Path(source.local_path).parent for record in records for source in record.spec.data if source.origin}
    yield from (one for one in home.fetched.glob("*/*") if one not in used)


def remove(paths: Iterable[Path]) -> None:
    """Remove revisions."""
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)

"""What an experiment asks of a backend, against what the backend can do and has."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from jupyter_autotrain.core.backend import Backend
from jupyter_autotrain.core.data import DataKind, DataSource
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.errors import DataError

_SHOWN = 3


def paths(spec: ExperimentSpec) -> dict[str, str]:
    """The paths that `data:` says are there already, with the names of their entries."""
    return {source.path: source.name for source in spec.data if source.kind is DataKind.PATH}


def check_data(spec: ExperimentSpec, backend: Backend) -> None:
    """Make sure that what `data:` says is there already is there on every node.

    Raises:
        DataError: It is not.
    """
    names = paths(spec)
    missing_paths = backend.missing_paths(list(names)) if names else []
    if not missing_paths:
        return
    found = [f"data.{names[path]}: {path} is not there on {node}" for node, path in missing_paths]
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    raise DataError(
        f"{'; '.join(found[:_SHOWN])}{more}.",
        f"A path that every node of the backend {backend.name!r} has.",
        "Correct `path:`, put the data there, or send it from here: `NAME: ./file`.",
    )


def with_sizes(spec: ExperimentSpec) -> ExperimentSpec:
    """Return the spec with the sizes of the data that it sends; what cannot be looked at counts nothing."""
    return replace(spec, data=tuple(_measured(source) for source in spec.data))


def _measured(source: DataSource) -> DataSource:
    if source.kind is not DataKind.COPY or source.size_bytes:
        return source
    path = Path(source.local_path).expanduser()
    size_bytes = 0
    for one in path.rglob("*") if path.is_dir() else (path,):
        with contextlib.suppress(OSError):
            size_bytes += one.stat().st_size if one.is_file() else 0
    return replace(source, size_bytes=size_bytes)


def missing(spec: ExperimentSpec, backend: Backend) -> Iterator[str]:
    """What a spec asks for that a backend cannot do, by the keys of the header."""
    can = backend.capabilities
    needs = spec.resources
    if spec.secrets and not can.secrets:
        yield "secrets (it has no safe way to pass them on)"
    if spec.returns and not can.artifacts:
        yield "returns (it brings no files back)"
    if needs.gpus and not can.gpu_slots:
        yield "resources.gpus (it gives out no GPUs)"
    if needs.nodes > 1 and not can.multi_node:
        yield "resources.nodes (it runs a trial on one node; there, `workers_per_node` gives it several processes)"
    if needs.workers_per_node > 1 and not can.multi_worker:
        yield "resources.workers_per_node (it starts one worker per trial)"
    if spec.launcher != "env" and not can.multi_worker:
        yield f"launcher {spec.launcher} (it starts one worker per trial)"
    if needs.memory_bytes and not can.limits_memory:
        yield "resources.memory (it cannot limit memory)"
    if needs.cpus and not can.limits_cpu:
        yield "resources.cpus (it cannot limit CPUs)"

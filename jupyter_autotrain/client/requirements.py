"""The demands of an experiment on a backend, against what that can do and has: capabilities, interpreters, packages."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from jupyter_autotrain.agent.environments import python_environment
from jupyter_autotrain.agent.environments.python_environment import EnvironmentKind, InspectsPython
from jupyter_autotrain.backends import python_packages
from jupyter_autotrain.core.backend import Backend
from jupyter_autotrain.core.data import DataKind, DataSource
from jupyter_autotrain.core.spec import STANDARD, ExperimentSpec
from jupyter_autotrain.errors import AutotrainError, DataError

_SHOWN = 3


def paths(spec: ExperimentSpec, place: str) -> dict[str, str]:
    """Return the paths that `data:` says are at a place already, with the names of their entries."""
    found = {source.path: source.name for source in spec.data if source.kind is DataKind.PATH and source.path}
    for client in spec.federated.clients if spec.federated else ():
        if client.place == place:
            found |= {path: f"{name}.clients.{client.name}" for name, path in client.data.items()}
    return found


def check_data(spec: ExperimentSpec, backend: Backend) -> None:
    """Make sure that what `data:` says is there already is there on every node.

    Raises:
        DataError: It is not.
    """
    names = paths(spec, backend.name)
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
    return replace(spec, data=tuple(map(_measured, spec.data)))


def _measured(source: DataSource) -> DataSource:
    if source.kind is not DataKind.COPY or source.size_bytes or not source.local_path:
        return source
    path = Path(source.local_path).expanduser()
    size_bytes = 0
    for one in path.rglob("*") if path.is_dir() else (path,):
        with contextlib.suppress(OSError):
            size_bytes += one.stat().st_size if one.is_file() else 0
    return replace(source, size_bytes=size_bytes)


def missing(spec: ExperimentSpec, backend: Backend) -> Iterator[str]:
    """Yield what a spec asks for that a backend cannot do, by the keys of the header."""
    can = backend.capabilities
    needs = spec.resources
    rows = (
        (spec.mode == STANDARD, can.follows_files, "a session (it follows only what trials print)"),
        (spec.federated is not None, can.keeps_output, "mode: federated (what a client prints leaves this place)"),
        (bool(spec.secrets), can.secrets, "secrets (it has no safe way to pass them on)"),
        (bool(spec.returns), can.artifacts, "returns (it brings no files back)"),
        (needs.gpus > 0, can.gpu_slots, "resources.gpus (it gives out no GPUs)"),
        (
            bool(needs.adjacent),
            can.gpu_slots and not can.queues,
            "resources.adjacent (it chooses GPUs and nodes by itself)",
        ),
        (
            needs.nodes > 1,
            can.multi_node,
            "resources.nodes (it runs a trial on one node; there, `workers_per_node` gives it several processes)",
        ),
        (
            spec.elastic and needs.nodes > 1,
            can.elastic_nodes,
            "elastic on several nodes (it ends the job with the first node that is lost; leave elastic out)",
        ),
        (
            needs.workers_per_node > 1,
            can.multi_worker,
            "resources.workers_per_node (it starts one worker per trial)",
        ),
        (spec.launcher != "env", can.multi_worker, f"launcher {spec.launcher} (it starts one worker per trial)"),
        (bool(needs.memory_bytes), can.limits_memory, "resources.memory (it cannot limit memory)"),
        (bool(needs.cpus), can.limits_cpu, "resources.cpus (it cannot limit CPUs)"),
    )
    for is_asked, is_possible, text in rows:
        if is_asked and not is_possible:
            yield text


_COMMENT = "#"


def with_requirements(spec: ExperimentSpec, folder: Path) -> ExperimentSpec:
    """Return the spec, with what its virtual environment is made of; the same spec where it needs none.

    Args:
        spec: The experiment; its bundle tells what the cell needs.
        folder: The notebook's folder, where a requirements file lies.

    Raises:
        BackendUnavailableError: The kernel's packages cannot be installed elsewhere.
        AutotrainError: The requirements file cannot be read, or names files of this machine.
    """
    asked = spec.python_environment
    if asked.kind is EnvironmentKind.MATCH:
        lines = python_packages.lock_versions(_package_names(spec)).lines
    elif asked.kind is EnvironmentKind.REQUIREMENTS:
        lines = _read(folder / Path(asked.value).expanduser())
    else:
        return spec
    return replace(spec, python_environment=replace(asked, requirements=lines))


def _read(path: Path) -> tuple[str, ...]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise AutotrainError(
            f"The requirements file {path} cannot be read: {error}.",
            "A text file that names one requirement per line.",
            "Correct `environment: {requirements: ...}`.",
        ) from None
    filled = filter(None, map(str.strip, text.splitlines()))
    lines = [line for line in filled if not line.startswith(_COMMENT)]
    local = list(filter(_is_local, lines))
    if local:
        raise AutotrainError(
            f"{path.name} names files or folders of this machine: {', '.join(local[:3])}.",
            "Requirements that can be installed anywhere, such as torch==2.13.0; each on its own line.",
            "Write out what they name, or send a folder of wheels by `PIP_FIND_LINKS`.",
        )
    return tuple(lines)


def _is_local(line: str) -> bool:
    """Only this file travels, so what it refers to beside itself would not be found."""
    return line.startswith(("-r", "-c", "-e", "--requirement", "--constraint", "--editable", ".", "/", "file:"))


def notes(spec: ExperimentSpec) -> list[str]:
    """Return what pins cannot say of the interpreter that `match` makes."""
    if spec.python_environment.kind is not EnvironmentKind.MATCH:
        return []
    return list(python_packages.lock_versions(_package_names(spec)).notes)


def _package_names(spec: ExperimentSpec) -> list[str]:
    return [package.name for package in spec.bundle.python_packages]


def check_packages(spec: ExperimentSpec, backend: Backend) -> list[str]:
    """Compare what the cell needs with what a backend's interpreters have; gives a line for each difference.

    Raises:
        BackendUnavailableError: Something is missing there.
    """
    packages = spec.bundle.python_packages
    if not isinstance(backend, InspectsPython):
        return []
    reports = backend.inspect_python(spec.python_environment, _package_names(spec))
    python_environment.refuse(reports, packages)
    return python_environment.differences(reports, packages, spec.bundle.python_version)

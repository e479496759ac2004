"""The environment of an experiment at submit: what it is made of, and whether a backend has what the cell needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from jupyter_autotrain.backends import environments
from jupyter_autotrain.core.backend import Backend
from jupyter_autotrain.core.python_environment import EnvironmentKind, InspectsPython
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.errors import AutotrainError

_COMMENT = "#"


def with_requirements(spec: ExperimentSpec, folder: Path) -> ExperimentSpec:
    """The spec, with what its virtual environment is made of; the same spec where it needs none.

    Args:
        spec: The experiment; its bundle tells what the cell needs.
        folder: The notebook's folder, where a requirements file lies.

    Raises:
        BackendUnavailableError: The kernel's packages cannot be installed elsewhere.
        AutotrainError: The requirements file cannot be read, or names files of this machine.
    """
    asked = spec.python_environment
    if asked.kind is EnvironmentKind.MATCH:
        lines = environments.lock_versions(package.name for package in spec.bundle.python_packages).lines
    elif asked.kind is EnvironmentKind.REQUIREMENTS:
        lines = _read(folder / Path(asked.value).expanduser())
    else:
        return spec
    return replace(spec, python_environment=replace(asked, requirements=lines))


def _read(path: Path) -> tuple[str, ...]:
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeError) as error:
        raise AutotrainError(
            f"The requirements file {path} cannot be read: {error}.",
            "A text file that names one requirement per line.",
            "Correct `environment: {requirements: ...}`.",
        ) from None
    lines = [line for line in lines if line and not line.startswith(_COMMENT)]
    local = [line for line in lines if _is_local(line)]
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
    """What pins cannot say of the environment that `match` makes."""
    if spec.python_environment.kind is not EnvironmentKind.MATCH:
        return []
    return list(environments.lock_versions(package.name for package in spec.bundle.python_packages).notes)


def check_packages(spec: ExperimentSpec, backend: Backend) -> list[str]:
    """Compare what the cell needs with what a backend's interpreters have; gives a line for each difference.

    Raises:
        BackendUnavailableError: Something is missing there.
    """
    packages = spec.bundle.python_packages
    if not isinstance(backend, InspectsPython):
        return []
    reports = backend.inspect_python(spec.python_environment, [package.name for package in packages])
    environments.refuse(reports, packages)
    return environments.differences(reports, packages, spec.bundle.python_version)

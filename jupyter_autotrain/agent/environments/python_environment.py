"""The interpreter and packages that a trial runs with, what a place has of them, and what a cell lacks there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Optional, Protocol, runtime_checkable

from jupyter_autotrain.agent.errors import BackendUnavailableError


class EnvironmentKind(str, Enum):  # noqa: UP042 - StrEnum is of Python 3.11
    """The kinds of environment that `environment:` of a header may ask for."""

    __str__ = str.__str__

    PLACE = "place"  # nothing: the interpreter of the backend
    MATCH = "match"  # a virtual environment with the versions of the notebook's kernel
    PYTHON = "python"  # an interpreter, by its path there
    CONDA = "conda"  # a conda environment, by its name or prefix there
    REQUIREMENTS = "requirements"  # a virtual environment with what a requirements file names
    IMAGE = "image"  # a container image, run by docker or podman


# What there is before a trial begins, so that it can be compared with what the trial needs.
INSPECTED_KINDS: Final = frozenset(
    {EnvironmentKind.PLACE, EnvironmentKind.PYTHON, EnvironmentKind.CONDA, EnvironmentKind.IMAGE}
)


@dataclass(frozen=True)  # slots are of Python 3.10
class PythonEnvironment:
    """The interpreter and packages that trials run with.

    Attributes:
        kind: How they are given.
        value: The path, name or prefix, file or image; "" where the kind needs none.
        requirements: Lines of a requirements file: what a virtual environment is made of.
    """

    kind: EnvironmentKind = EnvironmentKind.PLACE
    value: str = ""
    requirements: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}: {self.value}" if self.value else str(self.kind)


@dataclass(frozen=True)  # slots are of Python 3.10
class PythonPackage:
    """An installed distribution that a cell needs.

    Attributes:
        name: As it is installed by, such as scikit-learn.
        version: In the notebook's kernel.
        modules: What is imported of it, such as sklearn.
        is_in_data: True when pickled data refers to it, so that another version may fail to read the data.
    """

    name: str
    version: str
    modules: tuple[str, ...] = ()
    is_in_data: bool = False


@dataclass(frozen=True)  # slots are of Python 3.10
class InterpreterReport:
    """The version and packages of a node's interpreter.

    Attributes:
        node: The node's name; "" where the backend has only one.
        command: How it is started there, for a line that a user may copy.
        python_version: Such as 3.11.7.
        versions: Of each distribution asked for its version there; None where it is missing.
        fault: Why it could not be asked; then nothing else is known.
        is_managed: It is the operating system's, and pip refuses to install anything (PEP 668).
    """

    node: str
    command: str = "python3"
    python_version: str = ""
    versions: Mapping[str, Optional[str]] = field(default_factory=dict)  # noqa: UP045 - read by Python 3.9
    fault: str = ""
    is_managed: bool = False


@runtime_checkable
class InspectsPython(Protocol):
    """A backend that can tell what the interpreters of its nodes have. Others are not asked."""

    def inspect_python(self, environment: PythonEnvironment, distributions: Sequence[str]) -> list[InterpreterReport]:
        """Ask each node once; return an empty list where trials run with the kernel's own interpreter.

        Args:
            environment: Which interpreter.
            distributions: Names of distributions.
        """
        ...


OLDEST_PYTHON = (3, 9)
_SHOWN_NODES = 3


def refuse(reports: Sequence[InterpreterReport], packages: Sequence[PythonPackage]) -> None:
    """Refuse a place that lacks packages that a cell imports; name all that is missing on all nodes at once.

    Args:
        reports: What each node has.
        packages: What the cell needs.

    Raises:
        BackendUnavailableError: A node lacks a package, its interpreter cannot be used, or pickled data cannot be
            read by the major version that it has.
    """
    found = []
    actions = []
    for report in reports:
        for problem, action in _problems(report, packages):
            found.append(_at(report, problem))
            actions.append(_at(report, action))
    if found:
        raise BackendUnavailableError(
            f"Not all that this cell needs is there: {'; '.join(_first(found))}.",
            "Its interpreter was expected to have what the cell imports, and data was expected to be readable there.",
            "\n".join([*_first(actions), "Or write `environment: match`, to have one made there."]),
        )


def differences(
    reports: Sequence[InterpreterReport], packages: Sequence[PythonPackage], python_version: str
) -> list[str]:
    """Return a line for each node with other versions than the notebook's kernel; major differences are marked.

    Args:
        reports: What each node has.
        packages: What the cell needs.
        python_version: Of the notebook's kernel.
    """
    lines = []
    for report in reports:
        parts = list(_version_differences(report, packages, python_version))
        if parts:
            lines.append(_at(report, f"other versions than here: {', '.join(parts)}"))
    return lines


def _problems(report: InterpreterReport, packages: Sequence[PythonPackage]) -> Iterator[tuple[str, str]]:
    """Yield each problem of one node, and the action that solves it."""
    if report.fault:
        yield report.fault.rstrip("."), "correct `environment:`, or the profile"
        return
    if not report.python_version:
        return  # not known yet
    if _numbers(report.python_version)[:2] < OLDEST_PYTHON:
        yield f"Python {report.python_version} is too old", "name one of at least 3.9 in the profile (`python:`)"
        return
    lacking = [package for package in packages if report.versions.get(package.name) is None]
    if lacking:
        yield f"missing {', '.join(package.name for package in lacking)}", _install(report, lacking)
    unreadable = [package for package in packages if _cannot_be_read(package, report)]
    if unreadable:
        told = [f"{_version_change(package, report)} (pickled data depends on it)" for package in unreadable]
        yield f"another major version of {', '.join(told)}", _install(report, unreadable)


def _install(report: InterpreterReport, packages: Sequence[PythonPackage]) -> str:
    """Return the line that installs packages there.

    Pip must not install into the operating system's own interpreter, so there the line makes a virtual environment
    first.
    """
    names = " ".join(f"{package.name}=={public(package.version)}" for package in packages)
    if not report.is_managed:
        return f"{report.command} -m pip install {names}"
    install = f"{report.command} -m venv ~/venv && ~/venv/bin/python -m pip install {names}"
    return f"{install}; then `python: ~/venv/bin/python` in the profile"


def _cannot_be_read(package: PythonPackage, report: InterpreterReport) -> bool:
    theirs = report.versions.get(package.name)
    return package.is_in_data and theirs is not None and is_major(package.version, theirs)


def _version_differences(
    report: InterpreterReport, packages: Sequence[PythonPackage], python_version: str
) -> Iterator[str]:
    if not report.python_version:
        return
    if _numbers(report.python_version)[:2] != _numbers(python_version)[:2]:
        yield f"Python {report.python_version}, here {python_version}"
    for package in packages:
        theirs = report.versions.get(package.name)
        if theirs is not None and public(theirs) != public(package.version):
            major = " (another major version)" if is_major(package.version, theirs) else ""
            data = " (pickled data depends on it)" if package.is_in_data else ""
            yield _version_change(package, report) + major + data


def _version_change(package: PythonPackage, report: InterpreterReport) -> str:
    return f"{package.name} {report.versions.get(package.name)}, here {package.version}"


def is_major(one: str, other: str) -> bool:
    """Tell whether two versions are incompatible by semantic versioning.

    They are if their first numbers differ, or, with a first number of 0, their second ones.
    """
    mine = _numbers(one)
    theirs = _numbers(other)
    if mine[:1] != theirs[:1]:
        return True
    return mine[:1] == (0,) and mine[:2] != theirs[:2]


def public(version: str) -> str:
    """Return a version without its local label: 2.13.0 for 2.13.0+cpu, as package indexes have it."""
    return version.partition("+")[0]


def _numbers(version: str) -> tuple[int, ...]:
    parts = []
    for part in public(version).split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        parts.append(int(digits))
    return tuple(parts)


def _at(report: InterpreterReport, text: str) -> str:
    return f"{report.node}: {text}" if report.node else text


def _first(lines: Sequence[str]) -> list[str]:
    if len(lines) <= _SHOWN_NODES:
        return list(lines)
    return [*lines[: _SHOWN_NODES - 1], f"and {len(lines) - _SHOWN_NODES + 1} more"]

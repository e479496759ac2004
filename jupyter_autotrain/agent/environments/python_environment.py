"""The interpreter and packages that a trial runs with, and the known facts about those at a place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Optional, Protocol, runtime_checkable


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

"""The packages of a place that a cell needs, checked before its first trial, and the versions of the notebook's kernel.

The kernel's versions, as lines of a requirements file, are what `environment: match` is made of.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from jupyter_autotrain.agent.environments import python_environment
from jupyter_autotrain.agent.environments.python_environment import (
    EnvironmentKind,
    InterpreterReport,
    PythonEnvironment,
    PythonPackage,
    public,
)
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

_Key = tuple[str, PythonEnvironment, tuple[PythonPackage, ...]]


class InterpreterCheck:
    """A memory of the nodes that have what a cell needs; a node that lacks something is asked again next time."""

    def __init__(self) -> None:
        self._passed: set[_Key] = set()

    def check(self, node: str, trial: TrialSpec, ask: Callable[[], list[InterpreterReport]]) -> None:
        """Make sure that a node has the packages that a trial needs.

        Args:
            node: The node's name.
            trial: The trial.
            ask: Asks the node.

        Raises:
            BackendError: It lacks something; no waiting helps.
        """
        key = (node, trial.python_environment, trial.python_packages)
        is_place = trial.python_environment.kind is EnvironmentKind.PLACE  # its own interpreter runs the agent
        if key in self._passed or (is_place and not trial.python_packages):
            return
        try:
            python_environment.refuse(ask(), trial.python_packages)
        except BackendUnavailableError as error:
            raise BackendError(error.found, error.expected, error.action) from None
        self._passed.add(key)


@dataclass(frozen=True, slots=True)
class VersionLock:
    """Pinned distributions.

    Attributes:
        lines: One for each distribution, in alphabetical order.
        notes: What the pins cannot say, one line each.
    """

    lines: tuple[str, ...]
    notes: tuple[str, ...] = ()


def lock_versions(names: Iterable[str]) -> VersionLock:
    """Pin distributions and all that they require here, as markers of this platform say. O(distributions).

    A local label such as +cpu is no part of a pin: an index need not have it, and `==2.13.0` takes 2.13.0+cpu as well.

    Args:
        names: Installed distributions.

    Raises:
        BackendUnavailableError: One of them is installed from a folder, so that no index has it.
    """
    found = _closure(names)
    lines = []
    notes = []
    folders = []
    for name in sorted(found):
        distribution = found[name]
        source = _source(distribution)
        if source.is_folder:
            folders.append(f"{distribution.name} ({source.url})")
        elif source.line:
            lines.append(source.line)
        else:
            lines.append(f"{distribution.name}=={public(distribution.version)}")
        if public(distribution.version) != distribution.version:
            notes.append(
                f"{distribution.name} {distribution.version} is matched as {public(distribution.version)}: "
                "its index decides on the build (`env: {PIP_EXTRA_INDEX_URL: ...}`)"
            )
    if folders:
        raise BackendUnavailableError(
            f"`environment: match` cannot install what this kernel has from folders: {', '.join(folders)}.",
            "Versions that a package index has.",
            "Build a wheel of it and name its folder (`env: {PIP_FIND_LINKS: ...}`) after installing it here, or use "
            "`environment: {requirements: FILE}`.",
        )
    return VersionLock(tuple(lines), tuple(notes))


def _closure(names: Iterable[str]) -> dict[str, importlib.metadata.Distribution]:
    """Return the distributions and what they require with the extras asked for, without those not installed."""
    found: dict[str, importlib.metadata.Distribution] = {}
    seen = set[tuple[str, str]]()
    todo = [(canonicalize_name(name), "") for name in names]
    while todo:
        name, extra = todo.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        found[name] = distribution
        for required in _required(distribution.requires or (), extra):
            todo.append((canonicalize_name(required.name), ""))
            todo += [(canonicalize_name(required.name), one) for one in required.extras]
    return found


def _required(lines: Sequence[str], extra: str) -> Iterator[Requirement]:
    for line in lines:
        try:
            required = Requirement(line)
            if required.marker is None or required.marker.evaluate({"extra": extra}):
                yield required
        except (InvalidRequirement, UndefinedEnvironmentName):
            continue  # a broken line of an installed distribution, which works here all the same


@dataclass(frozen=True, slots=True)
class _Source:
    """The source that a distribution was installed from, where that is no index.

    Attributes:
        url: The address.
        line: The requirement that installs the same elsewhere, or "".
        is_folder: True for a folder of this machine, editable or not.
    """

    url: str = ""
    line: str = ""
    is_folder: bool = False


def _source(distribution: importlib.metadata.Distribution) -> _Source:
    try:
        told = json.loads(distribution.read_text("direct_url.json") or "{}")
    except ValueError:
        return _Source()
    url = str(told.get("url", ""))
    if (distribution.read_text("INSTALLER") or "").strip() == "conda":
        return _Source()  # it tells where conda built it
    if "dir_info" in told:
        return _Source(url, is_folder=True)
    if "vcs_info" in told:
        commit = told["vcs_info"].get("commit_id", "")
        return _Source(url, f"{distribution.name} @ {told['vcs_info'].get('vcs', 'git')}+{url}@{commit}")
    if url.startswith(("http://", "https://")):
        return _Source(url, f"{distribution.name} @ {url}")
    return _Source(url)  # a wheel on this machine: an index may have its version

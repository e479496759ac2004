"""The oldest releases that the package declares, and those that `.ci/versions oldest` installs."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[3]
TESTED_APART = {"jupyter-autotrain", "mpi4py"}  # ourselves, and what a laboratory needs


def declared() -> dict[str, Version]:
    """Each dependency with the least version that it may have; the greatest of them where extras differ."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    texts = [*project["dependencies"]]
    for name in ("parallel", "ssh", "kubernetes", "lab", "demo", "testing", "labs"):
        texts += extras[name]
    found: dict[str, Version] = {}
    for requirement in map(Requirement, texts):
        if requirement.name not in TESTED_APART:
            [least] = [Version(one.version) for one in requirement.specifier if one.operator == ">="]
            found[requirement.name] = max(least, found.get(requirement.name, least))
    return found


def test_the_oldest_releases_that_are_tested_are_those_that_are_declared() -> None:
    lines = (ROOT / ".ci" / "oldest.txt").read_text(encoding="utf-8").split()
    pinned = [line.split("==") for line in lines]
    tested = {name: Version(version) for name, version in pinned}
    assert tested == declared()

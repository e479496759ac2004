"""Which versions of JupyterLab list the extension as compatible."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "labextension" / "package.json"
BUILT = ROOT / "jupyter_autotrain" / "labextension" / "static"
# What JupyterLab 4.2.0 ships, and what each package is called in a later patch and a later minor version.
OLDEST = {"application": (4, 2, 0), "apputils": (4, 3, 0), "coreutils": (6, 2, 0), "services": (7, 2, 0)}


def wanted(name: str) -> str:
    dependencies: dict[str, str] = json.loads(PACKAGE.read_text())["dependencies"]
    return dependencies[f"@jupyterlab/{name}"]


@pytest.mark.parametrize("name", OLDEST)
@pytest.mark.parametrize("later", [(0, 0), (0, 7), (4, 6), (5, 0)])
def test_each_jupyterlab_from_4_2_on_takes_the_extension(name: str, later: tuple[int, int]) -> None:
    major, minor, patch = OLDEST[name]
    version = (major, minor + later[0], patch + later[1])
    assert wanted(name)[0] == "^"
    least = tuple(int(part) for part in wanted(name)[1:].split("."))
    assert version[0] == least[0]
    assert version >= least


def test_no_package_of_jupyterlab_is_pinned() -> None:
    dependencies = json.loads(PACKAGE.read_text())["dependencies"]
    assert [name for name, range_ in dependencies.items() if "@jupyterlab/" in name and range_[0] != "^"] == []


def test_the_built_extension_asks_a_jupyterlab_for_no_more_than_is_declared() -> None:
    package = json.loads(PACKAGE.read_text())
    declared = {name: asked for name, asked in package["dependencies"].items() if name.startswith("@jupyterlab/")}
    shared = package["jupyterlab"]["sharedPackages"]
    assert {name: shared[name]["requiredVersion"] for name in declared} == declared
    (entry,) = BUILT.glob("remoteEntry.*.js")
    asked = set(re.findall(r'requiredVersion:\s*"([^"]+)"', entry.read_text(encoding="utf-8")))
    of_jupyterlab = {each for each in asked if each.startswith(("^4.", "^7."))}
    assert "^4.2.0" in of_jupyterlab
    assert of_jupyterlab <= set(declared.values())

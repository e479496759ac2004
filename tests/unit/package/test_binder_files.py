"""The files of Binder's image agree with the package and with each other."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[3]
BINDER = ROOT / "binder"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
POST_BUILD = (BINDER / "postBuild").read_text(encoding="utf-8")


def of_conda() -> dict[str, Requirement]:
    """Return what conda installs, by its name there; conda writes one `=` for any release of a version."""
    lines = YAML(typ="safe").load((BINDER / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    texts = [re.sub(r"^(\w+)=([\d.]+)$", r"\1==\2.*", line) for line in lines]
    return {found.name: found for found in map(Requirement, texts)}


def test_conda_brings_a_python_and_a_node_that_the_package_takes() -> None:
    found = of_conda()
    named = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE)
    assert str(found["python"].specifier) in {f"=={version}.*" for version in named}
    engines = json.loads((ROOT / "labextension" / "package.json").read_text(encoding="utf-8"))["engines"]
    assert str(found["nodejs"].specifier) == engines["node"]


def test_conda_brings_a_pytorch_for_cpus_that_satisfies_the_package_so_that_pip_brings_none() -> None:
    [wanted] = [one for one in map(Requirement, PROJECT["optional-dependencies"]["demo"]) if one.name == "torch"]
    found = of_conda()
    assert found["pytorch-cpu"].specifier == wanted.specifier
    assert {"pytorch", "pytorch-gpu"}.isdisjoint(found)


def test_pip_installs_with_constraints_that_leave_out_what_conda_has() -> None:
    installs = [line for line in POST_BUILD.splitlines() if "pip install" in line and "--editable" in line]
    assert len(installs) == 1
    assert '--constraint "$constraints"' in installs[0]
    assert POST_BUILD.index("binder/constraints.py") < POST_BUILD.index(installs[0])
    assert "pip check" in POST_BUILD


def test_the_packages_that_pip_is_kept_to_satisfy_the_package() -> None:
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").split())
    versions = {name.lower().replace("_", "-").replace(".", "-"): Version(pin) for name, pin in pins.items()}
    wanted = [one for name in ("demo", "parallel", "lab") for one in PROJECT["optional-dependencies"][name]]
    for one in map(Requirement, [*PROJECT["dependencies"], *wanted]):
        name = one.name.replace(".", "-")
        assert name == "jupyter-autotrain" or versions[name] in one.specifier


def test_the_opened_layout_shows_the_sidebar_by_the_name_that_it_has_in_jupyterlab() -> None:
    layout = json.loads((BINDER / "workspace.json").read_text(encoding="utf-8"))["data"]["layout-restorer:data"]
    name = layout["left"]["current"]
    assert not layout["left"]["collapsed"]
    assert name in layout["left"]["widgets"]
    source = (ROOT / "labextension" / "src" / "sidebar" / "plugin.tsx").read_text(encoding="utf-8")
    assert f"restorer?.add(widget, '{name}')" in source


def test_the_badge_opens_a_notebook_that_is_there() -> None:
    [badge] = re.findall(r"mybinder\.org/v2/\S+urlpath=lab/tree/([\w./]+)", (ROOT / "README.md").read_text("utf-8"))
    [said] = re.findall(r"urlpath=lab/tree/([\w./]+)", (BINDER / "README.md").read_text("utf-8"))
    assert badge == said
    assert (ROOT / badge).exists()

"""Tests of the files around the package: workflows, metadata, citation, hooks, templates."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from ruamel.yaml import YAML

import jupyter_autotrain

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
OTHERS = [
    ROOT / name for name in ("CITATION.cff", ".pre-commit-config.yaml", ".github/dependabot.yml", "conda/recipe.yaml")
]


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    return found


def commands(path: Path) -> list[str]:
    """Return what the steps of a workflow run."""
    jobs = read(path)["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("path", [*WORKFLOWS, *TEMPLATES, *OTHERS], ids=lambda path: path.name)
def test_each_file_is_yaml(path: Path) -> None:
    assert read(path)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_what_people_run(path: Path) -> None:
    text = "\n".join(commands(path))
    targets = re.findall(r"^make ([\w-]+)", text, re.MULTILINE)
    scripts = re.findall(r"^\.ci/(\w+)", text, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets or scripts
    assert [name for name in targets if f"\n{name}:" not in makefile] == []
    assert [name for name in scripts if not (ROOT / ".ci" / name).exists()] == []
    assert read(path)["permissions"] == {"contents": "read"}


def test_the_classifiers_name_the_versions_that_are_tested() -> None:
    named = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE)
    matrix = read(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["versions"]["strategy"]["matrix"]
    assert named == matrix["python"]
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_the_citation_is_of_this_version() -> None:
    citation = read(ROOT / "CITATION.cff")
    assert str(citation["version"]) == jupyter_autotrain.__version__
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in PROJECT["authors"]]


def test_extras_name_extras_that_exist() -> None:
    extras = PROJECT["optional-dependencies"]
    texts = [text for lines in extras.values() for text in lines if text.startswith("jupyter-autotrain[")]
    assert {name for text in texts for name in Requirement(text).extras} <= set(extras)


def requirements(lines: list[str]) -> dict[str, str]:
    """Return the versions that each package may have; conda puts a space before them."""
    return {canonicalize_name(one.name): str(one.specifier) for one in map(Requirement, lines)}


def test_the_recipe_of_conda_requires_what_the_package_does() -> None:
    recipe = read(ROOT / "conda" / "recipe.yaml")
    run = recipe["requirements"]["run"]
    assert recipe["context"]["version"] == jupyter_autotrain.__version__
    assert run[0] == f"python {PROJECT['requires-python']}"
    assert requirements(run[1:]) == requirements(PROJECT["dependencies"])
    lab = requirements(PROJECT["optional-dependencies"]["lab"])
    assert requirements(recipe["requirements"]["run_constraints"]) == lab
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert requirements(build).items() <= requirements(recipe["requirements"]["host"][1:]).items()
    [command] = recipe["build"]["python"]["entry_points"]
    assert command.split(" = ") in [list(pair) for pair in PROJECT["scripts"].items()]


def test_the_changelog_names_this_version_with_its_tag_and_is_read_in_a_minute() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    begins = [number for number, line in enumerate(lines) if line.startswith("## [")]
    assert lines[begins[0]].startswith(f"## [{jupyter_autotrain.__version__}] - ")
    assert lines[-1].endswith(f"/releases/tag/v{PROJECT['version']}")
    assert [*begins, len(lines)][1] - begins[0] <= 60


def test_what_contributors_are_sent_to_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = {
        path for path in re.findall(r"`([\w./-]+/[\w./-]*)`", text) if not path.startswith((".venv/", "site/", "http"))
    }
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert len(paths) > 20
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
    assert [name for name in re.findall(r"`make ([\w-]+)`", text) if f"\n{name}:" not in makefile] == []


def test_all_brings_every_extra_of_a_user() -> None:
    extras = PROJECT["optional-dependencies"]
    named = {name for text in extras["all"] for name in re.findall(r"[\w-]+", text.partition("[")[2])}
    of_developers = {"all", "demo", "docs", "labs", "test", "testing"}
    assert named == set(extras) - of_developers

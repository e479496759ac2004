"""Paths of files here refer to the folder of the file they stand in: a project's, the user's, a named one, a cell."""

from __future__ import annotations

import typing
from pathlib import Path

import pytest
from pydantic import BaseModel, BeforeValidator

from jupyter_autotrain import backends, header
from jupyter_autotrain.header.types import _local_path
from jupyter_autotrain.header.value_faults import keys_of
from tests.projects import trust_project

SCHEMA = backends.header_schema()


@pytest.fixture
def context(tmp_path: Path) -> header.HeaderContext:
    """Return a notebook's folder inside a project, inside a home."""
    cwd = tmp_path / "home" / "project" / "notebooks"
    cwd.mkdir(parents=True)
    for folder in (cwd, cwd.parent, tmp_path / "home" / ".jupyter"):
        folder.mkdir(exist_ok=True)
        (folder / "file.txt").write_text("numpy\n")
    return header.HeaderContext(cwd, {"HOME": str(tmp_path / "home")}, backends.type_names(), SCHEMA)


def place(context: header.HeaderContext, source: str, text: str) -> tuple[Path, str, str]:
    """Write settings to one source; gives its folder, and the magic line and header that use them."""
    if source == "cell":
        return context.cwd, "", text
    folder = {"user": Path(context.environ["HOME"], ".jupyter")}.get(source, context.cwd.parent)
    name = "other.yaml" if source == "-f" else "autotrain.yaml"
    (folder / name).write_text(text)
    if source == "project":
        trust_project(context.cwd, context.environ)
    return folder, f"-f ../{name}" if source == "-f" else "", ""


def parsed(context: header.HeaderContext, line: str, cell: str) -> header.Header:
    return header.parse_cell(line, f"{cell}---\nx = 1", context).header


SOURCES = ["cell", "-f", "project", "user"]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("key", ["python", "conda"])
def test_an_interpreter_is_found_wherever_the_trial_runs_here(
    context: header.HeaderContext, source: str, key: str
) -> None:
    folder, line, cell = place(context, source, f"environment: {{{key}: ./venv/bin/python}}\n")
    assert getattr(parsed(context, line, cell).environment, key) == f"{folder}/venv/bin/python"


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("path", ["/opt/venv/bin/python", "~/venv/bin/python", "python3"])
def test_other_names_of_an_interpreter_stay_as_they_are(context: header.HeaderContext, source: str, path: str) -> None:
    _, line, cell = place(context, source, f"environment: {{python: {path}}}\n")
    assert parsed(context, line, cell).environment.python == path


@pytest.mark.parametrize("source", SOURCES)
def test_requirements_and_data_lie_beside_the_file_that_names_them(context: header.HeaderContext, source: str) -> None:
    settings = "environment: {requirements: file.txt}\ndata: {a: ./file.txt, b: {send: file.txt}, c: {path: /mnt/c}}\n"
    folder, line, cell = place(context, source, settings)
    found = parsed(context, line, cell)
    named = [found.environment.requirements, found.data_paths["a"], found.data_paths["b"]]
    assert [(context.cwd / str(path)).resolve() for path in named] == [folder / "file.txt"] * 3
    assert found.data["c"].path == "/mnt/c"
    if source == "cell":
        assert named == ["file.txt", "./file.txt", "file.txt"]


@pytest.mark.parametrize("source", ["project", "user"])
def test_patterns_of_ship_fit_what_lies_beside_the_notebook(context: header.HeaderContext, source: str) -> None:
    _, line, cell = place(context, source, "ship: ['*.txt']\n")
    assert parsed(context, line, cell).ship.files == ("*.txt",)


def local_paths(model: type[BaseModel], path: tuple[str, ...] = ()) -> list[str]:
    found = []
    for key, field in keys_of(path, model).items():
        if is_local_path(field.annotation, field.metadata):
            found.append(".".join((*path, key)))
        found += local_paths(model, (*path, key))
    return found


def is_local_path(annotation: object, metadata: typing.Iterable[object]) -> bool:
    if any(isinstance(one, BeforeValidator) and one.func is _local_path for one in metadata):
        return True
    if typing.get_origin(annotation) is typing.Annotated:
        inner, *more = typing.get_args(annotation)
        return is_local_path(inner, more)
    return any(is_local_path(inner, ()) for inner in typing.get_args(annotation))


def test_no_section_of_a_header_has_a_path_that_only_profiles_resolve() -> None:
    assert local_paths(SCHEMA) == []
    assert "config_file" in local_paths(backends.options_model("ssh"))

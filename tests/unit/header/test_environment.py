"""`environment:` says which interpreter and packages trials run with."""

import jsonschema
import pytest

from jupyter_autotrain import backends, header
from jupyter_autotrain.agent.environments.python_environment import EnvironmentKind, PythonEnvironment
from jupyter_autotrain.agent.json import from_json, to_json
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import HeaderError

SCHEMA = backends.header_schema()


def parse(text, **context):
    return header.parse_cell("", f"{text}\n---\nx = 1", header.HeaderContext(schema=SCHEMA, **context)).header


def spec(text, **context):
    return parse(text, **context).to_spec(bundle=Bundle(), name="cell")


def fault(text, **context):
    with pytest.raises(HeaderError) as caught:
        parse(text, **context)
    (only,) = caught.value.faults
    return only


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("trials: 1", EnvironmentKind.PLACE, ""),
        ("environment: match", EnvironmentKind.MATCH, ""),
        ("environment: {match: true}", EnvironmentKind.MATCH, ""),
        ("environment: {python: /opt/venv/bin/python}", EnvironmentKind.PYTHON, "/opt/venv/bin/python"),
        ("environment: {conda: torch2}", EnvironmentKind.CONDA, "torch2"),
        ("environment: {conda: 3.10}", EnvironmentKind.CONDA, "3.10"),
        ("environment: {image: 'python:3.12'}", EnvironmentKind.IMAGE, "python:3.12"),
    ],
)
def test_each_kind_reaches_the_spec_and_survives_the_store(text, kind, value):
    made = spec(text)
    assert made.python_environment == PythonEnvironment(kind, value)
    assert from_json(ExperimentSpec, to_json(made)).python_environment == made.python_environment


def test_a_requirements_file_is_looked_for_beside_the_notebook(tmp_path):
    text = "trials: 1\nenvironment: {requirements: needs.txt}"
    assert fault(text, cwd=tmp_path).startswith("line 3: no file 'needs.txt'; expected a file beside the notebook")
    (tmp_path / "needs.txt").write_text("six\n")
    assert spec(text, cwd=tmp_path).python_environment == PythonEnvironment(EnvironmentKind.REQUIREMENTS, "needs.txt")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("environment: mach", "line 2: environment: 'mach'; did you mean 'match'?"),
        ("environment: {python: a, conda: b}", "line 2: environment with python and conda; expected one of them"),
        ("environment: {pythn: a}", "line 2: unknown key 'pythn' in environment; did you mean 'python'?"),
        ("environment: {image: [a]}", "line 2: environment.image"),
    ],
)
def test_a_fault_names_its_line_and_what_was_meant(text, says):
    assert fault(text).startswith(says)


def test_help_and_json_schema_know_the_kinds():
    shown = header.help_text("environment", SCHEMA)
    for kind in ("match", "python", "conda", "requirements", "image"):
        assert f"environment.{kind}:" in shown
    validator = jsonschema.Draft202012Validator(header.json_schema(SCHEMA))
    for good in ("match", {"python": "/a"}, {"image": "a:b"}):
        validator.validate({"environment": good})
    for bad in ("mach", {"pythn": "/a"}):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate({"environment": bad})


@pytest.mark.parametrize(("text", "offered"), [("environment: ma|", {"match"}), ("environment: {co|", {"conda: "})])
def test_completion_offers_match_and_the_keys(text, offered):
    cell = f"%%autotrain\n{text}"
    cursor = cell.index("|")
    assert set(header.completions(cell.replace("|", ""), cursor, schema=SCHEMA).matches) == offered

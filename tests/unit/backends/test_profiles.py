"""Backends by name: profiles, options and their section of the header, several backends of one type."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import Field

from jupyter_autotrain import backends, header
from jupyter_autotrain.agent.json import JsonValue, to_json
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.attempt import trial_spec
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, NodePlacement, Placement
from jupyter_autotrain.errors import BackendError, HeaderError
from jupyter_autotrain.header.sections.section import Section
from jupyter_autotrain.header.types import Count
from jupyter_autotrain.testing import trial_of
from tests.projects import trust_project


class MoonOptions(Section):
    """Options of the moon.

    More about them.
    """

    craters: Count = Field(default=1, description="How many craters.", examples=["3"])


SCHEMA = header.with_backend_types((("moon", MoonOptions),))


def context(tmp_path: Path) -> BackendContext:
    return BackendContext(Home(tmp_path / "home"))


def test_backends_of_one_type_live_side_by_side_each_with_its_own_options(tmp_path: Path) -> None:
    where = context(tmp_path)
    first = backends.create(Profile("first", "local"), where)
    second = backends.create(Profile("second", "local", {"gpu_indices": [1]}), where)
    trial = trial_of(where.home, "")
    assert (first.name, second.name) == ("first", "second")
    assert '"options": {}' in first.render(trial, Placement()).files["trial.json"]
    assert '"gpu_indices": [\n   1\n  ]' in second.render(trial, Placement()).files["trial.json"]


def test_options_of_a_profile_that_do_not_fit_are_named_all_at_once(tmp_path: Path) -> None:
    profile = Profile("lab", "local", {"max_trials_per_gpu": 0, "gpus": 1})
    with pytest.raises(BackendError) as caught:
        backends.create(profile, context(tmp_path))
    assert "'lab'" in caught.value.found
    assert "max_trials_per_gpu" in caught.value.found
    assert "gpus" in caught.value.found
    assert "use_active_gpu" in caught.value.expected


def test_each_type_has_the_json_schema_of_its_options() -> None:
    schema = backends.options_model("local").model_json_schema()
    assert set(schema["properties"]) == {
        "max_trials_per_gpu", "use_active_gpu", "gpu_indices", "data_cache_limit", "reuse", "reuse_idle", "reuse_memory"
    }  # fmt: skip
    assert backends.options_model("debug").model_json_schema()["additionalProperties"] is False


def test_the_section_of_a_backend_is_checked_with_lines_helped_and_completed_as_every_other() -> None:
    where = header.HeaderContext(schema=SCHEMA)
    with pytest.raises(HeaderError) as caught:
        header.parse_cell("", "backend: moon\nmoon: {crater: 1}\n---\n", where)
    assert caught.value.faults == ("line 3: unknown key 'crater' in moon; did you mean 'craters'?",)
    shown = header.help_text("moon", SCHEMA)
    assert shown.startswith("moon\n  Options of the moon.\n  moon.craters: How many craters.")
    assert "moon.craters" in header.known_keys(SCHEMA)
    assert "MoonOptions" in str(header.json_schema(SCHEMA))
    cell = "%%autotrain\nmoon: {cra\n---\n"
    assert header.completions(cell, cell.index("\n---"), schema=SCHEMA).matches == ("craters: ",)


def test_only_what_the_section_of_the_chosen_backend_sets_enters_the_spec(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}

    def options(cell: str, cwd: Path = tmp_path) -> object:
        parsed = header.parse_cell("", f"{cell}\n---\n", header.HeaderContext(cwd, environ, schema=SCHEMA))
        return parsed.header.to_spec(bundle=Bundle(), name="x").backends[0].options

    assert options("backend: moon\nmoon: {craters: 3}") == {"craters": 3}
    assert options("backend: moon\nmoon: {}") == {}
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "autotrain.yaml").write_text("moon: {craters: 4}\n")
    trust_project(tmp_path / "project", environ)
    assert options("backend: local", tmp_path / "project") == {}
    assert options("backend: moon", tmp_path / "project") == {"craters": 4}


def test_a_trial_spec_names_no_path_and_no_device() -> None:
    bundle = Bundle(sha256="ab12", python="/usr/bin/python3", cwd="/home/ada")
    spec = ExperimentSpec("x", bundle)
    placement = Placement((NodePlacement("here", ("GPU-1",)),))
    trial = trial_spec(spec, TrialRecord("e1", 2, TrialState.WAITING, {}, attempt=3, placement=placement))
    assert (trial.bundle_sha256, trial.resume_attempt) == ("ab12", 2)
    assert not [text for text in _texts(to_json(trial)) if text.startswith(("/", "GPU"))]


def _texts(value: JsonValue) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = list(value.values()) if isinstance(value, dict) else value
    found: list[str] = []
    for item in items if isinstance(items, list) else ():
        found += _texts(item)
    return found


@pytest.mark.parametrize("key", ["python", "workdir"])
@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/scratch/$USER/at", "expected a path without variables"),
        ("~ada/at", "expected a path that begins with / or ~/"),
    ],
)
def test_a_path_on_a_host_has_nothing_that_a_shell_would_have_to_read_there(key: str, path: str, told: str) -> None:
    profile = Profile("lab", "ssh", {"hosts": ["gpu1"], key: path})
    with pytest.raises(BackendError, match=told):
        backends.create(profile, BackendContext(Home(Path("/nonexistent"))))

"""Options are read without the backends: a header's first use imports no backend that it does not run on."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from jupyter_autotrain import backends

PYPROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))
GROUPS = PYPROJECT["project"]["entry-points"]
TYPES = GROUPS[backends.GROUP]
OPTIONS = GROUPS[backends.OPTIONS_GROUP]
LOADS = """
import sys
from importlib.metadata import EntryPoint
import jupyter_autotrain.header
for value in sys.argv[1:]:
    EntryPoint("x", value, "options").load()
loaded = [name for name in sys.modules if name.endswith("backend") and name.startswith("jupyter_autotrain.backends")]
assert loaded == [], loaded
"""


@pytest.mark.parametrize("name", sorted(TYPES))
def test_the_model_that_an_entry_point_names_is_the_types_own(name):
    assert EntryPoint(name, OPTIONS[name], "").load() is EntryPoint(name, TYPES[name], "").load().options_model()


def test_models_are_loaded_without_any_backend():
    ended = subprocess.run(
        [sys.executable, "-c", LOADS, *OPTIONS.values()], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


def test_a_type_may_bring_its_model_by_an_entry_point_or_by_its_class(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    installed = tmp_path / "moonbase-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: moonbase\nVersion: 1.0\n")
    types = f"[{backends.GROUP}]\nmoon = not_there:Moon\nsun = jupyter_autotrain.backends.debug:DebugBackend\n"
    models = f"[{backends.OPTIONS_GROUP}]\nmoon = jupyter_autotrain.backends.local.options:LocalOptions\n"
    (installed / "entry_points.txt").write_text(types + models)
    assert backends.options_model("moon").__name__ == "LocalOptions"
    assert backends.options_model("sun").__name__ == "DebugOptions"

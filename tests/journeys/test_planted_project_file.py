"""A project file that came with a folder, in a real kernel: an unchanged cell runs nothing of it before trust."""

from __future__ import annotations

import sys

import pytest

from tests.journeys.kernel import Kernel

CELL = "%%autotrain {flags}\n---\nx = 1"


@pytest.fixture
def kernel(home, tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "config"))
    (tmp_path / "project").mkdir()
    kernel = Kernel(home, tmp_path / "project" / "work.ipynb")
    yield kernel
    kernel.close()


def test_expressions_of_a_planted_file_are_not_evaluated(kernel, tmp_path):
    ran = tmp_path / "ran"
    expression = f"__import__('pathlib').Path('{ran}').touch()"
    planted = f'parallel: {{model: "{expression}", inputs: "1", cluster: 8xA100}}\n'
    (tmp_path / "project" / "autotrain.yaml").write_text(planted)
    for flags in ("--dry-run", ""):
        told = kernel.run(CELL.format(flags=flags))
        assert not ran.exists()
        assert "`parallel` of a project's autotrain.yaml that is not trusted yet" in told
        assert "%autotrain backends trust-project" in told


def test_an_interpreter_beside_a_projects_file_runs_the_trials_of_notebooks_below(kernel, tmp_path):
    project = tmp_path / "project"
    (project / "venv" / "bin").mkdir(parents=True)
    (project / "venv" / "bin" / "python").symlink_to(sys.executable)
    (project / "autotrain.yaml").write_text("environment: {python: ./venv/bin/python}\n")
    (project / "deeper").mkdir()
    kernel.run("%cd deeper")
    agree = kernel.run("%autotrain backends trust-project").splitlines()[-1].partition("run: ")[2]
    kernel.run(agree)
    told = kernel.run("%%autotrain --wait beside\n---\nimport sys\nprint(sys.executable)")
    assert "SUCCEEDED" in told, told
    assert f"{project}/venv/bin/python" in kernel.run("%autotrain logs beside")

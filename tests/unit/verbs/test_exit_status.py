"""The exit status of `jupyter autotrain VERB`, by which a script decides whether it goes on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jupyter_autotrain import cli
from jupyter_autotrain.client import Experiment
from tests.projects import trust_project

DONE = ["PREPARING", "RUNNING", "SUCCEEDED"]
FAILED = ["PREPARING", "RUNNING", "FAILED"]


@pytest.fixture
def shell(terminal, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a user of the shell, whose home is the terminal's."""
    monkeypatch.setenv("JUPYTER_AUTOTRAIN_HOME", str(terminal.home.root))
    monkeypatch.setenv("HOME", str(terminal.cwd))
    monkeypatch.delenv("JUPYTER_CONFIG_DIR", raising=False)
    monkeypatch.chdir(terminal.cwd)
    return Path(terminal.cwd)


@pytest.mark.parametrize("words", [("backends", "check"), ("check",)])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_check_of_a_backend_that_does_not_work_gives_one(shell: Path, words: tuple, form: tuple) -> None:
    (shell / "autotrain.yaml").write_text("backends: {lab: {type: ssh, hosts: [a], config_file: ./none}}\n")
    trust_project(shell, {"HOME": str(shell)})
    assert cli.main([*words, "lab", *form]) == 1
    assert cli.main([*words, "debug", *form]) == 0


def test_a_doctor_who_finds_something_gives_one(shell: Path) -> None:
    (shell / "autotrain.yaml").write_text("backends: {lab: {type: ssh}}\n")
    assert cli.main(["doctor"]) == 1
    assert cli.main(["doctor", "--json"]) == 1


def test_a_doctor_is_content_where_the_extras_of_other_backends_are_missing(shell: Path, monkeypatch, capsys) -> None:
    for module in ("aiohttp", "kubernetes", "asyncssh"):
        monkeypatch.setitem(sys.modules, module, None)  # as where it is not installed
    assert cli.main(["doctor"]) == 0
    assert "aiohttp" in capsys.readouterr().out


def test_waiting_for_an_experiment_that_fails_gives_one(shell: Path, add) -> None:
    add("good", (DONE, 0.5))
    add("bad", (FAILED, 0.5))
    add("busy", (["PREPARING", "RUNNING"], 0.5), closed=False)
    assert cli.main(["wait", "good"]) == 0
    assert cli.main(["wait", "bad"]) == 1
    assert cli.main(["wait", "busy", "--timeout", "0"]) == 1


def test_an_interrupt_of_a_wait_detaches_and_gives_130(shell: Path, add, monkeypatch, capsys) -> None:
    def interrupt(*_: object, **__: object) -> bool:
        raise KeyboardInterrupt

    add("busy", (["PREPARING", "RUNNING"], 0.5), closed=False)
    monkeypatch.setattr(Experiment, "wait", interrupt)
    assert cli.main(["wait", "busy"]) == 130
    assert "End it: jupyter autotrain stop busy" in capsys.readouterr().out


def test_an_error_gives_two(shell: Path) -> None:
    assert cli.main(["backends", "check", "debgu"]) == 2

"""`export --yaml`: the objects of a trial for people who want kubectl."""

from __future__ import annotations

import pytest

from jupyter_autotrain.backends.debug import DebugBackend
from jupyter_autotrain.errors import AutotrainError

DONE = ("PREPARING", "RUNNING", "SUCCEEDED")


@pytest.fixture
def as_objects(monkeypatch):
    """Trials of the debug backend are objects of a cluster."""

    def manifest_text(self, trial):
        return f"---\nkind: Job\nname: {trial.job_id}\nwith: {dict(trial.options)}\n"

    monkeypatch.setattr(DebugBackend, "manifest_text", manifest_text, raising=False)


def test_the_objects_of_the_best_trial_are_written_for_kubectl(terminal, add, as_objects):
    add("digits", (DONE, 0.5), (DONE, 0.7), backend="debug")
    said = terminal.run("export", "digits", "--yaml")
    assert said == "Wrote digits.yaml (trial 2). Run it: kubectl apply -f digits.yaml\n"
    assert "name: digits0-2-1\n" in (terminal.cwd / "digits.yaml").read_text()


def test_a_trial_that_ran_elsewhere_is_written_for_a_profile(terminal, add, as_objects):
    add("digits", (DONE, 0.5))
    terminal.run("export", "digits", "--yaml", "--backend", "debug", "-o", "job.yaml")
    assert "name: digits0-1-1\n" in (terminal.cwd / "job.yaml").read_text()


def test_a_backend_without_objects_says_which_have_them(terminal, add):
    add("digits", (DONE, 0.5))
    with pytest.raises(AutotrainError, match="Backend 'local' does not run trials as objects of a cluster") as caught:
        terminal.run("export", "digits", "--yaml")
    assert "--backend NAME" in caught.value.action
    assert not (terminal.cwd / "digits.yaml").exists()


def test_a_backend_alone_means_yaml(terminal, add):
    add("digits", (DONE, 0.5))
    with pytest.raises(AutotrainError, match="--backend without --yaml"):
        terminal.run("export", "digits", "--backend", "debug")

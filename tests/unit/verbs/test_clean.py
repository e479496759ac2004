"""The verbs `clean` and `doctor` in a home that killed processes have left things in."""

from __future__ import annotations

import fcntl

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.environments import eviction
from jupyter_autotrain.client import leftovers
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.errors import AutotrainError, BackendUnavailableError
from jupyter_autotrain.store import Store


@pytest.fixture
def left(terminal, add):
    add("mnist", (["PREPARING", "RUNNING", "SUCCEEDED"], 0.5))
    paths = [terminal.home.drafts / "draft", terminal.home.experiment("orphan") / "bundle"]
    for path in paths:
        path.mkdir(parents=True)
        (path / "main.py").write_text("pass")
    return paths


def test_clean_says_what_killed_processes_left_and_removes_it_only_when_told(terminal, left):
    told = terminal.run("clean")
    assert "Would delete 2 leftovers of killed processes" in told
    assert "Add --yes" in told
    assert all(path.exists() for path in left)
    assert "Deleted 2 leftovers of killed processes" in terminal.run("clean", "--yes")
    assert not any(path.exists() for path in left)
    assert "Nothing to clean" in terminal.run("clean", "--yes")
    assert terminal.find("mnist").name == "mnist"


def test_clean_removes_the_virtual_environments_that_no_trial_uses(terminal, add):
    add("mnist", (["PREPARING", "RUNNING", "SUCCEEDED"], 0.5))
    for name in ("used", "unused"):
        folder = terminal.home.environments / name
        folder.mkdir(parents=True)
        (folder / eviction.COMPLETE).write_text("{}")
    with (terminal.home.environments / "used" / eviction.COMPLETE).open() as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        assert "Would delete 1 virtual environment that no trial uses (2 B)." in terminal.run("clean")
        assert "Deleted 1 virtual environment, 2 B freed" in terminal.run("clean", "--yes")
        assert [path.name for path in terminal.home.environments.iterdir()] == ["used"]
        assert "Nothing to clean" in terminal.run("clean", "--yes")


def test_clean_of_a_named_experiment_leaves_the_rest(terminal, left):
    assert "Deleted 1 experiment" in terminal.run("clean", "mnist", "--yes")
    assert all(path.exists() for path in left)


def test_doctor_names_leftovers_and_lost_experiments(terminal, left):
    terminal.home.trial("lost", 1, 1).mkdir(parents=True)
    told = terminal.run("doctor")
    assert "BAD   leftovers: 2 (8 B): draft of a killed submit" in told
    assert "clean --yes" in told
    assert "BAD   lost: 1 experiment of which only the files are left: lost" in told


def test_doctor_finds_a_damaged_store(terminal, add):
    add("mnist", *[(["PREPARING", "RUNNING", "SUCCEEDED"], 0.5)] * 200)
    with terminal.home.store.open("r+b") as file:
        file.seek(5 * 4096)
        file.write(b"x" * 8192)
    told = terminal.run("doctor")
    assert "BAD   store: " in told
    assert "doctor --repair" in told


def test_a_repair_needs_a_store(terminal):
    with pytest.raises(AutotrainError, match="no store"):
        terminal.run("doctor", "--repair")


def test_an_experiment_of_today_is_not_old_after_the_wall_clock_was_set_forward(terminal, add):
    experiment_id = add("mnist", (["PREPARING", "RUNNING", "SUCCEEDED"], 0.5))
    terminal.now_s = 10.0 + 30 * 86_400
    assert "Would delete 1 experiment" in terminal.run("clean", "--older", "7")
    with Store.open(terminal.home) as store:
        store.begin_experiment(experiment_id, BootTime.now())
    assert "Nothing to clean" in terminal.run("clean", "--older", "7")


def test_clean_says_what_could_not_be_pulled_any_more(terminal, left):
    directory = terminal.find("mnist").directory(1)
    directory.mkdir(parents=True)
    (directory / wire.ELSEWHERE_FILE).write_text('{"work/large.bin": 3000000}')
    told = terminal.run("clean", "mnist")
    assert "3 MB on other machines can then no longer be pulled." in told
    assert "  large.bin  (3 MB, still where the trial ran)" in terminal.run("pull", "mnist", "--trial", "1", "--list")


def test_load_of_what_is_still_elsewhere_says_how_to_bring_it(terminal, left):
    directory = terminal.find("mnist").directory(1)
    directory.mkdir(parents=True)
    (directory / wire.ELSEWHERE_FILE).write_text('{"outputs/model.pkl": 3000000}')
    with pytest.raises(AutotrainError, match=r"'model' of trial 1 has 3 MB and is still where the trial ran") as caught:
        terminal.run("load", "mnist", "model", "--trial", "1")
    assert "%autotrain pull mnist --trial 1" in caught.value.action


class Cluster:
    """A backend whose place keeps objects of a home."""

    left = ["Job autotrain-x in namespace lab", "ConfigMap autotrain-y in namespace lab"]  # noqa: RUF012 - of one test
    asked: list[set[str]] = []  # noqa: RUF012 - of one test

    def leftovers(self, experiments):
        self.asked.append(set(experiments))
        return list(self.left)

    def remove_leftovers(self, experiments):
        found = list(self.left)
        self.left.clear()
        return found

    def close(self):
        pass


def test_clean_names_what_is_left_in_a_cluster_and_removes_it_only_when_told(terminal, add, monkeypatch):
    running = add("mnist", (["PREPARING", "RUNNING"], None))
    monkeypatch.setattr(leftovers.backends, "create", lambda profile, context: Cluster())
    told = terminal.run("clean")
    assert "Would delete 2 objects on local: Job autotrain-x in namespace lab" in told
    assert Cluster.asked == [{running}]
    assert "Deleted 2 objects on local" in terminal.run("clean", "--yes")
    assert "Nothing to clean" in terminal.run("clean")


def test_clean_says_which_place_does_not_answer(terminal, add, monkeypatch):
    class Silent(Cluster):
        def leftovers(self, experiments):
            raise BackendUnavailableError("The API server does not answer.")

    add("mnist", (["PREPARING", "RUNNING", "SUCCEEDED"], 0.5))
    monkeypatch.setattr(leftovers.backends, "create", lambda profile, context: Silent())
    assert "local: cannot tell what is left there: The API server does not answer." in terminal.run("clean")


def test_clean_removes_trial_directories_of_deleted_experiments_where_they_lie(terminal, add, monkeypatch):
    kept = add("mnist", (["PREPARING", "RUNNING", "SUCCEEDED"], 0.5))

    class Hosts:
        there = {kept: 10, "gone": 2_000_000}  # noqa: RUF012 - of one test

        def experiments_there(self):
            return dict(self.there)

        def remove_experiments(self, experiments):
            for experiment_id in experiments:
                del self.there[experiment_id]

        def close(self):
            pass

    monkeypatch.setattr(leftovers.backends, "create", lambda profile, context: Hosts())
    assert "Would delete 1 object on local: trials of gone, which was deleted (2 MB)" in terminal.run("clean")
    assert "Deleted 1 object on local" in terminal.run("clean", "--yes")
    assert Hosts.there == {kept: 10}

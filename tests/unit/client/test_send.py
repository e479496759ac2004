"""A submission is whole or leaves nothing behind."""

import stat
import subprocess

import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.client import submission
from jupyter_autotrain.client.check import CheckedSpec
from jupyter_autotrain.client.send import send
from jupyter_autotrain.client.submitting import submit, trial
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import AutotrainError, ManagerError, StoreError
from jupyter_autotrain.store import Store

SECRET = "s3cret-value"
SPEC = ExperimentSpec("digits", Bundle())


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


@pytest.fixture
def told(monkeypatch):
    calls = []
    monkeypatch.setattr(manager, "ensure", lambda home: calls.append("ensure"))
    monkeypatch.setattr(manager, "notify", lambda home, message=None: calls.append(message or "ring") or True)
    return calls


def write(folder):
    folder.mkdir(mode=0o700)
    (folder / "main.py").write_text("print(1)")
    return Bundle(sha256="x")


def left_in(home):
    return [path.name for folder in ("experiments", "drafts") for path in (home.root / folder).glob("*")]


def test_a_submission_is_on_disk_private_and_rung_last(home, told):
    handle = send(home, SPEC, write, {})
    folder = home.bundle(handle.id)
    assert (folder / "main.py").read_text() == "print(1)"
    folders = (folder, folder.parent, folder.parent.parent, home.drafts)
    assert [stat.S_IMODE(path.stat().st_mode) for path in folders] == [0o700] * 4
    assert handle.record.spec.bundle.sha256 == "x"
    assert told == ["ensure", "ring"]
    assert handle.state == "WAITING"


def test_secrets_go_to_the_manager_before_the_experiment_exists_and_nowhere_else(home, told):
    spec = ExperimentSpec("digits", Bundle(), secrets=("TOKEN",))
    handle = send(home, spec, write, {"TOKEN": SECRET, "OTHER": "other-value"})
    assert told == ["ensure", {"secrets": {handle.id: {"TOKEN": SECRET}}}, "ring"]
    # By another process: one that opens and closes the store's file gives up its own locks on it.
    argv = ["grep", "-rlF", "-e", SECRET, "-e", "other-value", home.root]
    assert subprocess.run(argv, capture_output=True, check=False).stdout == b""


def test_a_missing_secret_is_an_error_before_anything_is_stored(home, told):
    spec = ExperimentSpec("digits", Bundle(), secrets=("A_TOKEN", "THERE", "B_TOKEN"))
    with pytest.raises(AutotrainError, match="A_TOKEN, B_TOKEN") as caught:
        send(home, spec, write, {"THERE": SECRET})
    assert caught.value.action
    assert not home.root.exists()
    assert told == []


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError("bad")])
def test_a_bundle_that_cannot_be_written_leaves_nothing_behind(home, told, error):
    def fail(folder):
        write(folder)
        raise error

    expected = StoreError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected):
        send(home, SPEC, fail, {})
    assert left_in(home) == []
    with Store.open(home) as store:
        assert store.experiments() == []


def test_a_store_that_cannot_keep_it_leaves_nothing_behind(home, told, monkeypatch):
    def refuse(*arguments):
        raise StoreError("full", "room", "clean")

    monkeypatch.setattr(Store, "add_experiment", refuse)
    with pytest.raises(StoreError):
        send(home, SPEC, write, {})
    assert left_in(home) == []


def test_a_manager_that_cannot_be_started_leaves_nothing_behind(home, told, monkeypatch):
    def refuse(home):
        raise ManagerError("no process", "one", "again")

    monkeypatch.setattr(manager, "ensure", refuse)
    with pytest.raises(ManagerError):
        send(home, SPEC, write, {})
    assert left_in(home) == []


def test_an_interrupt_after_the_transaction_comes_too_late(home, told, monkeypatch):
    keep = Store.add_experiment

    def interrupt(*arguments):
        keep(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "add_experiment", interrupt)
    assert send(home, SPEC, write, {}).name == "digits"
    with Store.open(home) as store:
        (record,) = store.experiments()
    assert (home.bundle(record.id) / "main.py").exists()


def test_drafts_of_killed_submitters_go_with_the_next_submission_and_living_ones_stay(home, told):
    killed = home.drafts / "killed"
    killed.mkdir(parents=True)
    (killed / "main.py").write_text("")

    def submit_within(folder):
        assert not killed.exists()
        other = send(home, SPEC, write, {})
        assert folder.parent.exists()
        assert home.bundle(other.id).exists()
        return write(folder)

    send(home, SPEC, submit_within, {})
    assert list(home.drafts.iterdir()) == []
    assert len(left_in(home)) == 2


def test_a_message_that_nobody_receives_starts_a_manager(home, told, monkeypatch):
    monkeypatch.setattr(manager, "notify", lambda home, message=None: False)
    send(home, SPEC, write, {})
    assert told == ["ensure", "ensure"]


def test_a_decorated_function_still_is_the_function():
    @trial(trials=3)
    def train(lr=0.1):
        """Train."""
        return lr * 2

    assert train(0.5) == 1.0
    assert train.__name__ == "train"
    assert train.__doc__ == "Train."


HISTORY = []


def fit():
    HISTORY.append(1)


@pytest.mark.parametrize(("returns", "is_copied"), [([], True), (["HISTORY"], False)])
def test_a_variable_that_comes_back_from_a_function_is_not_reported_as_a_copy(
    home, monkeypatch, capsys, returns, is_copied
):
    monkeypatch.setattr(submission, "check", lambda spec, home, patience: CheckedSpec(spec))
    monkeypatch.setattr(submission, "send", lambda *arguments, **more: None)
    submit(fit, home=home, returns=returns)
    assert ("copied: HISTORY" in capsys.readouterr().out) == is_copied

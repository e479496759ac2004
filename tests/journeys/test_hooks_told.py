"""Hooks end to end: a cell's or the user's own, told by a real manager, which is killed, or whose receiver is down."""

from __future__ import annotations

import json
import subprocess
import sys

import psutil
import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.testing import wait_until
from tests.journeys.hook_receiver import HookReceiver, delivery_states

KEY = "key-of-the-receiver-1f9a"
TOKEN = "token-of-the-trial-77c2"
KEEPS = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_bytes(sys.stdin.buffer.read())"
until = wait_until


@pytest.fixture
def receiver():
    made = HookReceiver()
    yield made
    made.close()


@pytest.fixture
def profile(tmp_path, monkeypatch):
    """Return the user's own autotrain.yaml."""
    folder = tmp_path / "config"
    folder.mkdir()
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(folder))
    return folder / "autotrain.yaml"


def deliveries(experiment):
    return delivery_states(experiment.store, experiment.id)


def kill_manager(home):
    process = psutil.Process(manager.status(home).pid)
    process.kill()
    psutil.wait_procs([process], timeout=240)


def test_an_address_and_a_command_are_told_from_the_profile_and_the_cell(
    notebook, home, receiver, profile, tmp_path, monkeypatch
):
    receiver.open()
    monkeypatch.setenv("HOOK_KEY", KEY)
    monkeypatch.setenv("MY_TOKEN", TOKEN)
    web = {
        "url": receiver.url,
        "headers": {"Authorization": "Bearer ${HOOK_KEY}"},
        "events": ["failed"],
        "timeout": "60s",
    }
    profile.write_text(json.dumps({"hooks": {"web": web, "unused": {"command": ["/nowhere/at/all"]}}}))
    kept = tmp_path / "kept"
    bell = {"command": [sys.executable, "-c", KEEPS, str(kept)], "events": ["trial_failed"], "timeout": "60s"}
    header = f"hooks: {json.dumps({'bell': bell})}\nnotify: [web, bell]\nsecrets: [MY_TOKEN]\n"
    notebook.run(
        f"%%autotrain hooked --wait\n{header}---\nimport os\nreport(v=1)\nraise ValueError(os.environ['MY_TOKEN'])"
    )
    experiment = notebook.value("_")
    until(lambda: {state for _, state, _ in deliveries(experiment)} == {"delivered"}, "both hooks are told")
    assert sorted(hook for hook, _, _ in deliveries(experiment)) == ["bell", "web"]
    (of_web,) = receiver.received
    of_bell = json.loads(kept.read_bytes())
    assert (of_web["event"], of_web["experiment"]["state"], of_web["experiment"]["name"]) == (
        "failed",
        "FAILED",
        "hooked",
    )
    assert (of_bell["event"], of_bell["trial"]["number"], of_bell["trial"]["state"]) == ("trial_failed", 1, "FAILED")
    assert "ValueError" in of_bell["text"]
    assert receiver.fields[0]["Authorization"] == f"Bearer {KEY}"
    sent = json.dumps([of_web, of_bell])
    assert TOKEN not in sent
    assert KEY not in sent
    # By another process: one that opens and closes the store's file gives up its own locks on it.
    assert subprocess.run(["grep", "-rslF", KEY, home.root], capture_output=True, check=False).stdout == b""


def test_a_manager_killed_between_an_end_and_its_delivery_tells_it_again_with_the_same_id(notebook, home, receiver):
    receiver.may_answer.clear()
    receiver.open()
    hooks = json.dumps({"web": {"url": receiver.url, "timeout": "60s"}})
    notebook.run(f"%%autotrain twice --wait\nhooks: {hooks}\n---\nreport(v=1)")
    experiment = notebook.value("_")
    until(lambda: receiver.received, "the first try arrives")
    assert deliveries(experiment) == [("web", "pending", 0)]
    kill_manager(home)
    receiver.may_answer.set()
    manager.ensure(home)
    until(lambda: deliveries(experiment) == [("web", "delivered", 1)], "the next manager tells it")
    assert len({message["id"] for message in receiver.received}) == 1
    assert [message["event"] for message in receiver.received] == ["ended", "ended"]


def test_a_receiver_that_was_down_is_told_once_it_is_back(notebook, receiver):
    hooks = json.dumps({"web": {"url": receiver.url, "timeout": "60s"}})
    notebook.run(f"%%autotrain later --wait\nhooks: {hooks}\n---\nreport(v=1)")
    experiment = notebook.value("_")
    until(lambda: deliveries(experiment)[0][2] >= 1, "a try fails")
    assert receiver.received == []
    receiver.open()
    until(lambda: deliveries(experiment)[0][1] == "delivered", "a later try arrives")
    (message,) = receiver.received
    assert message["text"].startswith("later@1 is SUCCEEDED (1 succeeded)")

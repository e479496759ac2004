"""Checkpoints of an attempt on one host for the next one on another, while links are cut."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.ssh import trial_needs
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Resources, TrialSpec
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

FILES = {"first.pt": b"first", "last.pt": b"last"}


class Link:
    """A host that has files of an attempt, or none; after some answers it is silent."""

    def __init__(self, files: Mapping[str, bytes], answers: int = 1000, job: str = "") -> None:
        self._files = files
        self._job = job
        self.answers = answers
        self.got: list[dict[str, bytes]] = []
        self.sent = SimpleNamespace(send_checkpoints=self._send)

    def ask(self, do: str, *, job: str, path: str, offset: int = 0) -> object:
        if not self.answers:
            raise BackendUnavailableError("It does not answer.")
        self.answers -= 1
        if not self._files or self._job not in {"", job}:
            raise BackendError(f"There is no job {job}.")
        if do == "list":
            return {name: len(data) for name, data in self._files.items()}
        return base64.b64encode(self._files[Path(path).name][offset:]).decode()

    def _send(self, root: Path) -> str:
        self.got.append({path.name: path.read_bytes() for path in root.iterdir()})
        return "there"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def have(home: Home, **links: Link) -> JsonObject:
    trial = TrialSpec("e1", 1, 2, resume_attempt=1)
    found = cast("Mapping[str, HostLink]", links)
    return trial_needs.have_checkpoints(found, "h2", "owner/e1-1-1", trial, BackendContext(home))


def goes_on_from(home: Home, nodes: int = 1, **links: Link) -> tuple[int | None, str]:
    trial = TrialSpec("e1", 1, 4, resources=Resources(nodes=nodes), resume_attempt=3)
    hosts = cast("Mapping[str, HostLink]", links)
    found = trial_needs.from_last_saved(hosts, lambda job_id: f"owner/{job_id}", trial, BackendContext(home))
    return found.resume_attempt, found.resume_note


def test_a_trial_goes_on_from_the_last_attempt_that_has_left_some_on_any_host(home: Home) -> None:
    first = Link(FILES, job="owner/e1-1-1")
    second = Link(FILES, job="owner/e1-1-2")
    assert goes_on_from(home, h1=first, h2=Link({})) == (1, "")
    assert goes_on_from(home, h1=first, h2=second) == (2, "")
    assert goes_on_from(home, h1=Link({}), h2=Link({})) == (3, "")


def test_all_nodes_go_on_from_the_same_attempt(home: Home) -> None:
    first = Link(FILES, job="owner/e1-1-1@0")
    second = Link(FILES, job="owner/e1-1-2@1")
    assert goes_on_from(home, nodes=2, h1=first, h2=second) == (2, "")


def test_it_says_where_later_ones_may_be_that_it_does_not_go_on_from(home: Home) -> None:
    silent = Link(FILES, answers=0)
    note = "goes on from attempt 1: later checkpoints may be on h1, without an answer"
    assert goes_on_from(home, h1=silent, h2=Link(FILES, job="owner/e1-1-1")) == (1, note)
    assert goes_on_from(home, h1=silent, h2=Link({})) == (3, "")  # then it begins anew, and `have` says so


def test_they_go_from_host_to_host_whole(home: Home) -> None:
    there = Link({})
    assert have(home, h1=Link(FILES), h2=there) == {"resume_from": "there"}
    assert there.got == [FILES]
    assert not [path for path in home.trial("e1", 1, 1).rglob("*") if path.is_file()]


@pytest.mark.parametrize("answers", range(1, 4))
def test_what_was_cut_short_is_never_sent_for_all_of_them(home: Home, answers: int) -> None:
    one = Link(FILES, answers)
    there = Link({})
    with pytest.raises(BackendUnavailableError):
        have(home, h1=one, h2=there)
    assert have(home, h1=one, h2=there) == {
        "resume_note": "starts over: its checkpoints may be on h1, without an answer"
    }
    assert there.got == []
    one.answers = 1000
    assert have(home, h1=one, h2=there) == {"resume_from": "there"}
    assert there.got == [FILES]


def test_those_that_another_backend_left_in_the_home_are_sent(home: Home) -> None:
    saved = home.trial("e1", 1, 1) / wire.CHECKPOINTS
    saved.mkdir(parents=True)
    (saved / "last.pt").write_bytes(b"last")
    there = Link({})
    assert have(home, h1=Link({}, answers=0), h2=there) == {"resume_from": "there"}
    assert there.got == [{"last.pt": b"last"}]

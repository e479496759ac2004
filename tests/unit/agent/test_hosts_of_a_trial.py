"""Tests of a host's agent for a trial on several: the place to meet, and the new beginning of a lost part."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.errors import BackendError
from jupyter_autotrain.agent.nodes import hosts


def test_each_request_gets_the_same_place_and_token_which_only_the_user_can_read(tmp_path: Path) -> None:
    first = hosts.endpoint(tmp_path, "127.0.0.1", "other")
    assert first == hosts.endpoint(tmp_path, "127.0.0.1", "other")
    address, port, token = first
    assert (address, isinstance(port, int), len(str(token))) == ("127.0.0.1", True, 32)
    (kept,) = (tmp_path / wire.CONTROL).iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert hosts.endpoint(tmp_path / "another", "127.0.0.1", "other")[2] != token


def test_an_address_that_is_not_of_this_host_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=r"No port can be had at the address '192\.0\.2\.7'"):
        hosts.endpoint(tmp_path, "192.0.2.7", "other")


@pytest.mark.parametrize(
    ("state", "secrets", "begins"), [("LOST", [], True), ("RUNNING", [], False), ("LOST", ["KEY"], False)]
)
def test_a_lost_part_begins_again_with_the_token_unless_it_needs_secrets(
    tmp_path: Path, state: str, secrets: list[str], begins: bool
) -> None:
    hosts.keep(tmp_path, {"bundle": "/code", "directory": str(tmp_path), "secrets": secrets}, "of this trial")
    (kept,) = tmp_path.iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    status = {"state": state, "reason": "", "supervisor": [1, 0.0, ""]}
    (tmp_path / wire.STATUS_FILE).write_text(json.dumps(status))
    assert hosts.prepare_again(tmp_path) == (("/code", "of this trial") if begins else ("", ""))
    assert (tmp_path / wire.STATUS_FILE).exists() is not begins
    assert "of this trial" not in (tmp_path / wire.TRIAL_FILE).read_text() if begins else True

"""Files of a trial on their way through the log of a pod into the home."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.pods import frames, places
from jupyter_autotrain.agent.pods.frames import MOST_FILE_BYTES, Relay
from jupyter_autotrain.backends.log_channel.collected import CollectedNode, GapError


def decoded(lines: list[str]) -> list[frames.Frame]:
    found = [frames.decode(line.removesuffix("\n")) for line in lines]
    return [frame for frame in found if frame is not None]


@given(st.binary(max_size=40_000))
def test_all_bytes_come_back_from_lines_that_no_runtime_splits(data: bytes) -> None:
    lines = list(frames.encode("stdout", 7, data))
    assert all(len(line.encode()) <= 16 << 10 and line.count("\n") == 1 for line in lines)
    assert b"".join(frame.data for frame in decoded(lines)) == data
    offset = 7
    for frame in decoded(lines):
        assert frame.offset == offset
        offset += len(frame.data)


def test_text_can_be_read_in_the_log() -> None:
    assert list(frames.encode("stdout", 0, "Größe 1\n".encode())) == ['autotrain:["stdout", 0, "Größe 1\\n"]\n']


@pytest.mark.parametrize(
    "line",
    ["", "epoch 1", "autotrain:", "autotrain:[1, 2, 3]", 'autotrain:["a", -1, "x"]', 'autotrain:["a", true, "x"]'],
)
def test_other_lines_are_no_frames(line: str) -> None:
    assert frames.decode(line) is None


def test_what_comes_twice_is_kept_once_and_what_is_missing_is_seen(tmp_path: Path) -> None:
    node = CollectedNode(tmp_path)
    node.append("stdout", 0, b"one\n")
    CollectedNode(tmp_path).append("stdout", 0, b"one\ntwo\n")
    node.append("stdout", 4, b"two\n")
    assert (node.directory / "stdout").read_bytes() == b"one\ntwo\n"
    with pytest.raises(GapError, match="bytes 8 to 12 of stdout"):
        node.append("stdout", 12, b"four")


@pytest.mark.parametrize(
    "path", ["../x", "trial.json", "outputs/../../x", "/etc/passwd", "outputs", "control/stop", ""]
)
def test_a_path_that_the_trial_makes_up_has_no_place(path: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no place"):
        CollectedNode(tmp_path).append(path, 0, b"x")


def relayed(run: Path) -> tuple[Relay, CollectedNode]:
    """Return what a relay sends of a folder, and what is collected of it."""
    lines: list[str] = []
    relay = Relay(str(run), lines.append)
    relay.finish()
    node = CollectedNode(run.parent / "collected")
    for frame in decoded(lines):
        if frame.path != places.NODE:
            node.append(frame.path, frame.offset, frame.data)
    return relay, node


def make_trial(run: Path) -> Path:
    directory = run / places.TRIAL
    for folder in (wire.OUTPUTS, wire.WORK, wire.CHECKPOINTS):
        (directory / folder).mkdir(parents=True)
    (directory / wire.STDOUT).write_text("printed\n")
    (directory / "stdout-1").write_text("of rank 1\n")
    (directory / wire.STATUS_FILE).write_text(json.dumps({"state": "SUCCEEDED", "reason": ""}))
    return directory


def test_everything_that_a_trial_leaves_is_collected(tmp_path: Path) -> None:
    directory = make_trial(tmp_path / "run")
    (directory / "outputs" / "empty").write_bytes(b"")
    (directory / "outputs" / "model.pkl").write_bytes(os.urandom(30_000))
    relay, node = relayed(tmp_path / "run")
    assert node.has_ended()
    assert relay.fits_into_log
    node.make_empty_files()
    assert (node.directory / "outputs" / "empty").read_bytes() == b""
    assert node.status() == {"state": "SUCCEEDED", "reason": ""}
    for name in ("stdout", "stdout-1", "outputs/model.pkl"):
        assert (node.directory / name).read_bytes() == (directory / name).read_bytes()


def test_files_that_are_too_big_for_the_log_are_named(tmp_path: Path) -> None:
    directory = make_trial(tmp_path / "run")
    (directory / "outputs" / "big").write_bytes(bytes(MOST_FILE_BYTES + 1))
    (directory / "outputs" / "small").write_bytes(b"x")
    relay, node = relayed(tmp_path / "run")
    assert node.has_ended()
    assert not relay.fits_into_log
    assert node.left == {"outputs/big"}
    assert (node.directory / "outputs" / "small").read_bytes() == b"x"


def test_a_listing_that_the_trial_makes_up_names_no_other_place(tmp_path: Path) -> None:
    node = CollectedNode(tmp_path)
    listing = {"sizes": {"../../x": 5, "outputs/a": "long", "outputs/b": 1}, "left": ["../../x", 3, "outputs/b"]}
    node.append(places.FILES, 0, json.dumps(listing).encode() + b"\n")
    assert node.has_ended()
    assert list(node.missing()) == [("outputs/b", 0, 1)]


def test_a_status_that_the_trial_makes_up_is_passed_over(tmp_path: Path) -> None:
    node = CollectedNode(tmp_path)
    node.append(places.STATES, 0, b'{"state": "RUNNING", "reason": ""}\n{"state": 3}\n[]\n{"state')
    assert node.status() == {"state": "RUNNING", "reason": ""}

"""A trial that is begun again in its directory goes on with its stream: no step is lost, and none is there twice."""

import json

from jupyter_autotrain.agent.ranks.reporter import Reporter


def steps(directory):
    found = []
    for line in (directory / "metrics").read_text().splitlines():
        frame = json.loads(line)
        if frame[0] == "m":
            found.append((frame[1], sorted(frame[3])))
    return found


def test_steps_that_are_repeated_after_a_checkpoint_are_not_reported_again(tmp_path):
    first = Reporter(str(tmp_path))
    for step in range(5):
        first(step, loss=0.5)
    second = Reporter(str(tmp_path))
    for step in range(3, 8):
        second(step, loss=0.4)
    assert steps(tmp_path) == [(step, ["loss"]) for step in range(8)]


def test_a_step_that_was_reported_in_part_is_completed(tmp_path):
    Reporter(str(tmp_path))(3, loss=0.5)
    second = Reporter(str(tmp_path))
    second(3, loss=0.5)
    second(3, accuracy=0.9)
    assert steps(tmp_path) == [(3, ["loss"]), (3, ["accuracy"])]


def test_steps_that_are_counted_go_on(tmp_path):
    for _ in range(2):
        reporter = Reporter(str(tmp_path))
        reporter(loss=0.5)
        reporter(loss=0.4)
    assert [step for step, _ in steps(tmp_path)] == [0, 1, 2, 3]


def test_a_line_that_was_cut_short_is_ended(tmp_path):
    Reporter(str(tmp_path))(0, loss=0.5)
    with (tmp_path / "metrics").open("a") as file:
        file.write('["m",1,17')
    Reporter(str(tmp_path))(1, loss=0.4)
    lines = (tmp_path / "metrics").read_text().splitlines()
    assert lines[2] == '["m",1,17'
    assert json.loads(lines[3])[1] == 1


def test_a_stream_with_notes_alone_begins_at_its_first_step(tmp_path):
    Reporter(str(tmp_path)).note("info", "hello")
    Reporter(str(tmp_path))(loss=0.5)
    assert steps(tmp_path) == [(0, ["loss"])]

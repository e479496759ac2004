"""`logs`: the end of a stream, named, in bounded memory, with stderr where stdout is empty."""

import subprocess
import sys

import pytest

from jupyter_autotrain.client.logs import LogFollower, read_tail, read_text
from jupyter_autotrain.core.spec import Resources
from jupyter_autotrain.errors import AutotrainError

DONE = ("PREPARING", "RUNNING", "SUCCEEDED")


@pytest.fixture
def directory(tmp_path):
    directory = tmp_path / "trial"
    directory.mkdir()
    return directory


@pytest.fixture
def digits(terminal, add):
    experiment_id = add("digits", (DONE, 0.5), (DONE, 0.4), ((), None), closed=False)
    for number in (1, 2):
        terminal.home.trial(experiment_id, number, 1).mkdir(parents=True)

    def write(number, stream, text):
        (terminal.home.trial(experiment_id, number, 1) / stream).write_text(text)

    return write


def test_the_trial_and_the_stream_are_named(terminal, digits):
    digits(2, "stdout", "a\nb\n")
    assert terminal.run("logs", "digits") == "digits, trial 2, stdout:\na\nb\n"
    assert terminal.run("logs", "digits", "--trial", "1") == (
        "digits, trial 1, stdout (SUCCEEDED, nothing printed so far):\n"
    )
    with pytest.raises(AutotrainError, match="no trial 9"):
        terminal.run("logs", "digits", "--trial", "9")


def test_what_is_left_out_is_counted_and_the_way_to_all_of_it_is_named(terminal, digits):
    digits(2, "stdout", "".join(f"line {n}\n" for n in range(1, 1241)))
    text = terminal.run("logs", "digits", "-n", "2")
    assert text == "digits, trial 2, stdout (last 2 of 1,240 lines; all of them: -n 1240):\nline 1239\nline 1240\n"


def test_stderr_is_shown_where_stdout_is_empty(terminal, digits):
    digits(2, "stdout", "")
    digits(2, "stderr", "a warning\n")
    assert terminal.run("logs", "digits") == "digits, trial 2, stderr (stdout is empty):\na warning\n"
    assert terminal.run("logs", "digits", "--stderr") == "digits, trial 2, stderr:\na warning\n"


def test_each_of_several_ranks_has_a_log_of_its_own(terminal, add):
    experiment_id = add("split", (DONE, 0.5), closed=False, resources=Resources(nodes=2), launcher="torchrun")
    folder = terminal.home.trial(experiment_id, 1, 1)
    folder.mkdir(parents=True)
    for name, text in {"stdout": "of 0\n", "stdout-1": "of 1\n", "stderr-1": "bad\n", "launcher": "agent\n"}.items():
        (folder / name).write_text(text)
    assert terminal.run("logs", "split") == "split, trial 1, rank 0, stdout:\nof 0\n"
    assert terminal.run("logs", "split", "--rank", "1") == "split, trial 1, rank 1, stdout:\nof 1\n"
    assert terminal.run("logs", "split", "--rank", "1", "--stderr") == "split, trial 1, rank 1, stderr:\nbad\n"
    assert terminal.run("logs", "split", "--launcher") == "split, trial 1, launcher:\nagent\n"
    with pytest.raises(AutotrainError, match=r"ranks 0 to 1"):
        terminal.run("logs", "split", "--rank", "2")
    assert terminal.find("split").logs(1, rank=1) == "of 1\n"


def test_colours_are_shown_only_when_the_raw_text_is_asked_for(terminal, digits):
    digits(2, "stdout", "\x1b[31mred\x1b[0m\n")
    assert terminal.run("logs", "digits").endswith(":\nred\n")
    assert terminal.run("logs", "digits", "--raw").endswith(":\n\x1b[31mred\x1b[0m\n")


@pytest.mark.parametrize("text", ["", "\n", "a", "a\n", "a\nb", "a\nb\n", "\n\nb\n", "é\nü\nlong " * 7])
@pytest.mark.parametrize("lines", [1, 2, 3, 50])
def test_the_tail_is_that_of_all_lines(directory, text, lines):
    (directory / "stdout").write_text(text, newline="")
    tail = read_tail(directory, "stdout", lines)
    whole = text.split("\n")
    rows = [f"{row}\n" for row in whole[:-1]] + ([whole[-1]] if whole[-1] else [])
    assert tail.text == "".join(rows[len(rows) - min(lines, len(rows)) :])
    assert tail.lines_before == len(rows) - min(lines, len(rows))
    assert tail.end_bytes == len(text.encode())


def test_a_line_without_an_end_is_cut_at_the_limit(directory):
    (directory / "stdout").write_text("x" * 5_000)
    assert read_tail(directory, "stdout", 10, limit_bytes=1_000).text == "x" * 1_000
    text = read_text(directory, "stdout", 1_000)
    assert text == "... 4 kB before this (limit_bytes=None gives all)\n" + "x" * 1_000
    assert read_text(directory, "stdout", None) == "x" * 5_000


def test_a_huge_log_is_read_in_bounded_memory(directory):
    with (directory / "stdout").open("wb") as file:
        file.truncate(250_000_000)  # a hole: it reads as zeros and takes no room
        file.seek(0, 2)
        file.write(b"\nthe end\n")
    program = (
        "import pathlib, resource, sys; from jupyter_autotrain.client.logs import read_tail;"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "tail = read_tail(pathlib.Path(sys.argv[1]), 'stdout', 1);"
        "print(tail.text.strip(), tail.lines_before,"
        " resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64_000)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(directory)], capture_output=True, text=True, check=True)
    assert done.stdout == "the end 1 True\n"


def test_following_gives_new_text_once_and_never_half_a_character(directory):
    log = directory / "stdout"
    log.write_bytes("seen é".encode()[:-1])
    follower = LogFollower(directory, "stdout", 5)
    assert "".join(follower.read()) == ""
    with log.open("ab") as file:
        file.write("é".encode()[-1:] + b" new")
    assert "".join(follower.read()) == "é new"
    assert list(follower.read()) == []
    assert list(LogFollower(directory, "stderr", 0).read()) == []

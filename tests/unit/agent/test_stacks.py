"""Where ranks stand: what faulthandler writes is read, and told in a sentence; the signal harms nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from jupyter_autotrain.agent.trial import stacks

DUMP = """\
Thread 0x00007f (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 982 in run
Current thread 0x00007f [python] (most recent call first):
  File "/site/torch/distributed/distributed_c10d.py", line 3252 in all_reduce
  File "/site/torch/distributed/c10d_logger.py", line 83 in wrapper
  File "/bundle/main.py", line 12 in <module>
  File "/x/jupyter_autotrain/agent/ranks/cell_runner.py", line 95 in _execute
"""


CELL = ("/bundle/main.py", "f")


def is_own(file):
    return file == "/bundle/main.py"


def name_of(file, number):
    return f"cell [3], line {number}"


def frames(*calls):
    return [(file, number, function) for number, (file, function) in enumerate(calls, 1)]


def test_the_main_thread_is_read_without_what_runs_the_cell():
    assert [function for _, _, function in stacks.main_thread(DUMP)] == ["all_reduce", "wrapper", "<module>"]
    assert len(stacks.threads(DUMP)) == 2
    assert stacks.main_thread("") == []


@pytest.mark.parametrize(
    ("calls", "place"),
    [
        ([("/bundle/main.py", "train")], "cell [3], line 1"),
        ([("/t/graph.py", "_engine_run"), ("/t/_tensor.py", "backward"), CELL], "backward (cell [3], line 3)"),
        ([("/t/c10d.py", "all_reduce"), ("/l/trainer.py", "fit"), CELL], "all_reduce (cell [3], line 3)"),
        ([("<frozen importlib._bootstrap>", "exec_module"), CELL], "an import (cell [3], line 2)"),
        ([("/usr/socket.py", "accept")], "accept"),
        ([], "code that is not Python"),
    ],
)  # fmt: skip
def test_a_place_is_what_the_cell_has_called_and_its_line(calls, place):
    assert stacks.place(frames(*calls), is_own, name_of) == place


@pytest.mark.parametrize(
    ("places", "text"),
    [
        ({0: "fit", 1: "fit", 2: "fit", 3: "all_reduce"}, "rank 3 waits in all_reduce, the others are in fit"),
        ({0: "all_reduce (line 2)", 1: "all_reduce (line 2)"}, "all ranks wait in all_reduce (line 2)"),
        ({0: "fit"}, "rank 0 is in fit"),
        ({0: "fit", 1: "barrier"}, "rank 0 is in fit, rank 1 waits in barrier"),
        ({0: "a", 1: "b", 2: "b", 4: "b", 5: "c"}, "rank 0 is in a, rank 5 is in c, the others are in b"),
    ],
)  # fmt: skip
def test_ranks_are_grouped_where_they_stand_alike(places, text):
    assert stacks.sentence(places) == text


def test_ranks_in_a_row_are_named_as_a_range():
    assert stacks.named([0, 1, 2, 7]) == "ranks 0-2, 7"


def test_an_answer_is_read_once_it_is_whole(tmp_path):
    path = str(tmp_path / "stacks")
    for tag in ("earlier", "mine"):
        stacks.begin(path, tag)
        with (tmp_path / "stacks").open("a") as file:
            file.write(DUMP)
        assert stacks.answer_to((tmp_path / "stacks").read_text(), tag) is None
        stacks.end(path, tag, f"place of {tag}", "")
    text = (tmp_path / "stacks").read_text()
    assert stacks.answer_to(text, "earlier")[1] == "place of earlier"
    assert stacks.answer_to(text, "mine") == (DUMP, "place of mine", "")


RANK = """
import os, signal, sys
from jupyter_autotrain.agent.trial import stacks
{before}
stacks.answer_requests(sys.argv[1])
{after}
os.kill(os.getpid(), stacks.SIGNAL)
print("alive")
"""
HANDLER = "signal.signal(stacks.SIGNAL, lambda *_: print('mine'))"


@pytest.mark.parametrize(
    ("before", "after", "printed", "answers"),
    [
        ("", "", "alive\n", True),
        (HANDLER, "", "mine\nalive\n", True),
        ("", HANDLER, "mine\nalive\n", False),
        ("", "signal.signal(stacks.SIGNAL, signal.SIG_DFL)", "alive\n", False),
        ("os.chdir('/'); sys.argv[1] = '/nowhere/stacks'", "", "alive\n", False),
    ],
)
def test_the_signal_ends_no_process_and_a_handler_of_the_users_stays(tmp_path, before, after, printed, answers):
    path = tmp_path / "stacks"
    argv = [sys.executable, "-c", RANK.format(before=before, after=after), str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout == printed
    assert ("<module>" in path.read_text() if path.exists() else False) == answers


def test_a_process_that_never_heard_of_it_is_not_ended_either():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    os.kill(process.pid, stacks.SIGNAL)
    process.communicate(b"\n")
    assert process.returncode == 0
    assert signal.Signals(stacks.SIGNAL).name == "SIGURG"

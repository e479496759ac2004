"""A session: cells run in an interpreter at a place, which keeps their state, until it is closed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import jupyter_autotrain as at
from jupyter_autotrain.client.sessions.handle import Session

CHATTY = """
from jupyter_autotrain.agent.ranks import api
from jupyter_autotrain.agent.session.messages import SESSION, Frames, Requests, message
directory = api.context().directory
frames = Frames(directory, stream_bytes=8000, shown_bytes=3000)
frames.write(message(SESSION, "ready", {}))
requests = Requests(directory)
while not should_stop():
    for request in requests.take():
        said = [("execute_input", {})] + [("stream", {"name": "stdout", "text": "x" * 100})] * 50
        for kind, content in [*said, ("status", {"execution_state": "idle"})]:
            frames.write(message("iopub", kind, content, request))
        frames.write(message("shell", "execute_reply", {"status": "ok"}, request))
"""


@pytest.fixture
def notebook(notebook, tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))  # where kernel specs go
    return notebook


@pytest.fixture
def lab(notebook):
    notebook.run("%autotrain session open lab")
    yield notebook
    notebook.run("%autotrain stop lab")


def test_cells_of_a_session_keep_its_state_and_show_what_they_would_show_here(lab):
    _, shown = lab.run("%%autotrain --session lab\ncount = 41\nprint('counting')\ncount + 1")
    assert shown.split() == ["counting", "42"]
    _, shown = lab.run("%%autotrain --session lab\ntrials: 3\n---\ncount += 1\nprint(count)\nreport(count=count)")
    assert shown.split() == ["42"]
    assert "count" not in lab.shell.user_ns
    lines = lab.fails("%%autotrain --session lab\ndef half(x):\n    return x / 0\nhalf(1)")
    assert "ZeroDivisionError" in lines[-1]
    assert "line 3" in "".join(lines)
    _, shown = lab.run("%%autotrain --session lab\n%%capture kept\nprint(1)")
    assert shown == ""
    lab.run("given = {'numbers': [1, 2]}")
    lab.run("%autotrain session push given")
    lab.run("%%autotrain --session lab\ntaken = [*given['numbers'], count]")
    lab.run("%autotrain session pull taken")
    assert lab.value("taken") == [1, 2, 42]
    (error,) = [line for line in lab.fails("%autotrain session pull nothing") if "'nothing'" in line]
    assert "no variable" in error


def test_a_session_is_an_experiment_of_its_own_mode_that_ends_well_when_it_is_closed(lab):
    experiment = at.attach("lab")
    assert (experiment.state, experiment.record.spec.mode) == ("RUNNING", "standard")
    lab.run("%%autotrain --session lab\nprint('in the log')\nreport(loss=0.5)")
    assert "is open" in lab.fails("%autotrain session open lab")[0]
    _, shown = lab.run("%autotrain session list")
    assert "lab" in shown
    _, shown = lab.run("%autotrain session close lab")
    assert "is closed" in shown
    assert experiment.state == "SUCCEEDED"
    assert [row["value"] for row in experiment.metrics()] == [0.5]
    assert experiment.logs() == "in the log\n"
    assert "No session" in lab.fails("%%autotrain --session lab\n1")[0]


def test_an_idle_session_warns_and_then_ends_by_itself(notebook):
    notebook.run("%autotrain session open short --idle 2s")
    experiment = at.attach("short")
    assert experiment.wait(timeout_s=240)
    assert experiment.state == "SUCCEEDED"
    warned, ended = [note.text for note in experiment.store.notes(experiment.id)]
    assert "has been idle" in warned
    assert "the session has ended: idle for" in ended


def test_a_cell_of_a_session_is_trained_by_another_flag_and_what_it_needs_of_the_session_is_told_before(lab):
    cell = "search: {x: 'choice(1, 2)'}\n---\nreport(score=x * scale + offset)"
    lab.run("offset = 1")
    lab.run("%%autotrain --session lab\nscale = 10\noffset = 2\nx = 1")
    lab.run(f"%%autotrain --session lab\n{cell}")
    _, told = lab.run(f"%%autotrain --session lab --check\n{cell}")
    assert "scale: only the session has it (int, " in told
    assert "offset: a trial gets the notebook's" in told
    assert len(told.splitlines()) == 2
    lab.run("%autotrain session pull scale")
    lab.run(f"%%autotrain tried --wait --backend local\n{cell}")
    assert sorted(row["value"] for row in lab.value("_").metrics()) == [11, 21]


def test_a_shell_of_a_session_is_a_terminal_at_its_place(lab, home):
    pexpect = pytest.importorskip("pexpect")
    environ = {**os.environ, "JUPYTER_AUTOTRAIN_HOME": str(home.root), "SHELL": "/bin/sh"}
    shell = pexpect.spawn(
        sys.executable, ["-m", "jupyter_autotrain.cli", "session", "shell", "lab"], env=environ, timeout=120
    )
    shell.expect_exact("leaves it.")
    shell.expect("[$#] ")  # keys before the prompt are lost
    shell.sendline("echo $((40 + 2))-$JUPYTER_AUTOTRAIN_RANK; tty; exit")
    shell.expect_exact("42-")
    shell.expect_exact("/dev/pts/")
    shell.expect(pexpect.EOF)
    shell.close()
    assert shell.exitstatus == 0


def test_a_session_that_is_stopped_leaves_no_sockets(lab):
    _, shown = lab.run("%%autotrain --session lab\nimport ipykernel\nprint(ipykernel.get_connection_file())")
    sockets = Path(shown.strip()).parent
    assert sockets.name.startswith("autotrain-session-")
    lab.run("%autotrain stop lab")
    assert not sockets.exists()


def test_what_cells_show_is_kept_up_to_a_limit_and_a_reader_goes_on_in_the_next_stream(home, notebook):
    experiment = at.submit(CHATTY, home=home, name="chatty")
    with Session(experiment) as session:
        for _ in range(10):
            shown = []
            session.run("", shown.append)
            texts = [one["content"]["text"] for one in shown if one["msg_type"] == "stream"]
            assert 1 < len(texts) < 20
            assert (set(texts[:-1]), "the rest is left out" in texts[-1]) == ({"x" * 100}, True)
        streams = sorted(path.name for path in (experiment.directory(1) / "session").glob("frames.*"))
    experiment.stop()
    assert len(streams) == 2
    assert "frames.0" not in streams


@pytest.mark.long
def test_a_session_works_where_ipykernel_is_not_installed(notebook, tmp_path, monkeypatch):
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "ipykernel.py").write_text("raise ImportError('there is none')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "without"))
    notebook.run("%autotrain session open plain")
    notebook.run("%%autotrain --session plain\ncount = 41")
    _, shown = notebook.run("%%autotrain --session plain\nreport(count=count)\ncount + 1")
    assert shown.split() == ["42"]
    notebook.run("%autotrain session pull count --session plain")
    assert notebook.value("count") == 41
    assert "NameError" in notebook.fails("%%autotrain --session plain\nget_ipython()")[-1]
    notebook.run("%autotrain session close plain")

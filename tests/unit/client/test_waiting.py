"""A submission that takes longer than a moment shows how far it has come, and leaves nothing."""

import io
from types import SimpleNamespace

import pytest

from jupyter_autotrain.client import waiting as module
from jupyter_autotrain.client.waiting import Progress, in_terminal


@pytest.fixture
def clock(monkeypatch):
    made = SimpleNamespace(now_s=100.0)
    monkeypatch.setattr(module.time, "monotonic", lambda: made.now_s)
    return made


def test_nothing_is_shown_in_the_first_half_second(clock):
    said = []
    with Progress(said.append, lambda: said.append("cleared")) as progress:
        for _ in range(50):
            clock.now_s += 0.009
            progress.captured(10)
    assert said == []


def test_a_line_is_shown_at_most_ten_times_a_second_and_cleared(clock):
    said = []
    with Progress(said.append, lambda: said.append("cleared")) as progress:
        for part in range(300):
            clock.now_s += 0.01
            progress.written(part * 10**6, 300 * 10**6)
    assert 20 <= len(said) <= 27
    assert said[-1] == "cleared"
    assert said[0].startswith("Writing [###")
    assert "of 300 MB" in said[0]


def test_it_is_cleared_after_an_interrupt_too(clock):
    said = []

    def interrupted():
        with Progress(said.append, lambda: said.append("cleared")) as progress:
            clock.now_s += 1
            progress.captured(5 * 10**6)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert said == ["Capturing variables: 5 MB   (interrupt: nothing is sent)", "cleared"]


@pytest.mark.parametrize(("terminal", "written"), [(True, "\r\x1b[KWriting"), (False, "")])
def test_only_a_terminal_gets_the_line(clock, terminal, written):
    stream = io.StringIO()
    stream.isatty = lambda: terminal
    with in_terminal(stream) as progress:
        clock.now_s += 1
        progress.written(1, 2)
    assert stream.getvalue()[: len(written)] == written
    assert stream.getvalue().endswith("\r\x1b[K") is terminal
    assert bool(stream.getvalue()) is terminal

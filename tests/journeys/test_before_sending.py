"""Tests of what is told before a cell is sent, with the real magic; and of a submission that is interrupted."""

from __future__ import annotations

import signal

import pytest

import jupyter_autotrain as at
from jupyter_autotrain.cell import submission
from jupyter_autotrain.client import submission as pipeline

CELL = "%%autotrain told{flags}\nreturns: [kept]\n---\nkept, model['w'] = 1, offset\nseen.append(helper(2))"


@pytest.fixture
def prepared(notebook):
    notebook.run("offset, model, seen = 3, {'w': 0}, []\ndef helper(x):\n    return x + offset")
    return notebook


def test_check_says_what_travels_and_what_differs_and_sends_nothing(prepared):
    before = len(at.experiments())
    result, shown = prepared.run(CELL.format(flags=" --check"))
    assert result.success
    assert shown.splitlines() == [
        "Valid for backend 'local'; nothing was sent.",
        "Travels: the cell, 1 definition, 3 variables (36 B).",
        "In a trial, other than here:",
        "  copied: model, seen: the trial changes copies; these here stay as they are (`returns:` brings them back)",
    ]
    assert len(at.experiments()) == before


def test_check_says_when_nothing_differs(prepared):
    _, shown = prepared.run("%%autotrain --check\nprint(offset)")
    assert shown.splitlines()[-1] == "Nothing differs from running the cell here."


def test_check_tells_faults_of_header_and_capture(prepared):
    assert "'objective'" in "\n".join(prepared.fails("%%autotrain --check\nobjectiv: maximize x\n---\nprint(1)"))
    assert "offse" in "\n".join(prepared.fails("%%autotrain --check\nprint(offse)"))


def test_the_notice_and_the_stored_experiment_tell_it_too(prepared):
    _, shown = prepared.run(CELL.format(flags=" --wait"))
    assert "  copied: model, seen: the trial changes copies;" in shown
    experiment = prepared.value("_")
    assert [line[:20] for line in experiment.record.spec.bundle.differences] == ["copied: model, seen:"]
    assert "copied: model, seen" in experiment._repr_mimebundle_()["text/html"]


def test_the_python_way_tells_it_too(prepared, capsys):
    prepared.run("import jupyter_autotrain as at\ndef train(params):\n    seen.append(1)")
    _, shown = prepared.run("run = at.submit(train)")
    assert "copied: seen: the trial changes a copy" in shown
    assert prepared.value("run").wait(240)


@pytest.mark.parametrize("where", ["read", "submit"])
def test_an_interrupt_leaves_nothing_and_says_so_in_one_line(prepared, home, monkeypatch, where):
    before = len(at.experiments())

    def interrupted(*_arguments, **_options):
        signal.raise_signal(signal.SIGINT)

    # A shell that starts tests in the background has its children ignore the signal.
    before_handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    module, name = {"read": (submission, "read"), "submit": (pipeline, "send")}[where]
    monkeypatch.setattr(module, name, interrupted)
    try:
        lines = prepared.fails(CELL.format(flags=""))
    finally:
        signal.signal(signal.SIGINT, before_handler)
    assert lines == ["Nothing was sent."]
    assert len(at.experiments()) == before
    assert list(home.drafts.iterdir()) == []

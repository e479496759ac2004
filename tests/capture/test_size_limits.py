"""Tests that the pickled size counts against the limit, measured while writing; progress is told meanwhile."""

import pytest

from jupyter_autotrain.capture.values import stream


def test_an_interrupt_out_of_the_progress_passes_through(notebook, monkeypatch):
    monkeypatch.setattr(stream, "_PAUSE_S", 0)

    def interrupt(_):
        raise KeyboardInterrupt

    book = notebook("rows = [[i] for i in range(20_000)]")
    with pytest.raises(KeyboardInterrupt):
        book.capture("print(rows)", progress=interrupt)
    assert book.both("print(len(rows))") == "20000\n"

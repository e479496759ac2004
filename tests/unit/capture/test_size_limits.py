"""Tests that the pickled size counts against the limit, measured while writing; progress is told meanwhile."""

import tracemalloc

import pytest

from jupyter_autotrain.capture import CaptureLimits
from jupyter_autotrain.capture.values import stream
from jupyter_autotrain.errors import CaptureError

SMALL = CaptureLimits(data_bytes=2_000_000)


def refusal(book, code, limits=SMALL):
    with pytest.raises(CaptureError) as caught:
        book.capture(code, limits=limits)
    assert len(str(caught.value).splitlines()) <= 6
    return str(caught.value)


def test_a_model_counts_as_its_weights(notebook):
    book = notebook("import torch\nmodel = torch.nn.Linear(1000, 1000)")
    text = refusal(book, "print(model)")
    assert "4.01 MB  model" in text
    assert "At most 2 MB" in text


def test_names_are_listed_by_the_size_they_would_have(notebook):
    book = notebook("a = bytes(700_000)", "b = bytes(1_500_000)", "c = bytes(100_000)")
    text = refusal(book, "print(a, b, c)")
    assert "is 2.3 MB" in text
    assert "1.5 MB  b" in text
    assert "800 kB  in 2 more" in text


def test_what_is_far_too_big_is_not_built_first(notebook):
    book = notebook("rows = [[float(i)] for i in range(200_000)]")
    tracemalloc.start()
    text = refusal(book, "print(rows)")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "over 2" in text
    assert peak < 20_000_000


def test_progress_is_told_while_data_is_pickled(notebook, monkeypatch):
    monkeypatch.setattr(stream, "_PAUSE_S", 0)
    seen = []
    notebook("rows = [[i] for i in range(20_000)]").capture("print(rows)", progress=seen.append)
    assert seen
    assert seen == sorted(seen)

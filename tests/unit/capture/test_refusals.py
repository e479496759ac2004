"""Tests that all that cannot travel is refused by name before anything is sent, at once, in six lines at most."""

# Cells are written on one line each, however long, so that they read as a list.
# ruff: noqa: E501

import pytest

from jupyter_autotrain.capture import CaptureLimits
from jupyter_autotrain.errors import CaptureError, ShipError


def refusal(book, code, **options):
    with pytest.raises((CaptureError, ShipError)) as caught:
        book.capture(code, **options)
    text = str(caught.value)
    assert len(text.splitlines()) <= 6, text
    assert caught.value.found
    assert caught.value.action
    return text


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("x = open(__import__('os').devnull)", "an open file"),
        ("x = (i for i in range(3))", "a generator"),
        ("import threading\nx = threading.Lock()", "a lock"),
        ("import threading\nx = threading.Thread(target=print)", "a running thread"),
        ("import sqlite3\nx = sqlite3.connect(':memory:')", "a database connection"),
        ("import socket\nx = socket.socket()", "a network connection"),
        ("async def f(): pass\nx = f()", "an asynchronous task"),
        ("import tempfile\nx = tempfile.NamedTemporaryFile()", "an open file"),
        ("import torch\nx = torch.zeros(2, device='meta')", "a tensor without data"),
        ("import types\nx = types.ModuleType('made_up')", "a module that exists only in this kernel's memory"),
    ],
)
def test_what_cannot_travel_is_refused_with_the_reason(notebook, source, why):
    book = notebook(source)
    text = refusal(book, "print(x)")
    assert "x (cell [1]): " in text
    assert why.removeprefix("an ") in text
    close = getattr(book.namespace["x"], "close", None)
    if close is not None:
        close()


def test_the_way_to_the_culprit_is_shown(notebook):
    book = notebook("class Box: pass\nbox = Box()\nbox.parts = {'log': [open(__import__('os').devnull)]}")
    assert "box.parts['log'][0] (cell [1]): an open file" in refusal(book, "print(box)")
    book.namespace["box"].parts["log"][0].close()


def test_all_culprits_are_named_at_once(notebook):
    book = notebook("import threading\na, b, c, d, e = [threading.Lock() for _ in range(5)]")
    text = refusal(book, "print(a, b, c, d, e)")
    assert "5 names" in text
    assert "a (cell [1])" in text
    assert "and 3 more" in text


def test_a_tensor_on_another_device_is_refused_inside_a_model_too(notebook):
    book = notebook("import torch\nmodel = torch.nn.Linear(2, 2, device='meta')")
    assert "model.bias (cell [1]): a tensor without data (device meta)" in refusal(book, "print(model)")


def test_a_culprit_used_only_by_a_helper_is_found(notebook):
    book = notebook("lines = (i for i in [])", "def helper():\n    return next(lines)")
    assert "lines (cell [1])" in refusal(book, "helper()")


def test_an_object_that_refuses_to_be_pickled_is_named_with_its_own_reason(notebook):
    book = notebook("class Stubborn:\n    def __reduce__(self): raise TypeError('I stay here')\ns = Stubborn()")
    assert "s (cell [1]): a Stubborn that cannot be pickled: I stay here" in refusal(book, "print(s)")


def test_a_big_array_is_refused_without_pickling_it_and_the_way_out_is_ship(notebook):
    book = notebook("import numpy as np\nX = np.zeros(50_000_000)\ny = np.zeros(10)")
    text = refusal(book, "print(X, y)")
    assert "400 MB  X" in text
    assert "ship:" in text
    assert "At most 200 MB" in text


@pytest.mark.parametrize(
    "source",
    ["X = list(range(3_000_000))", "X = 'x' * 3_000_000", "X = {'k': bytearray(3_000_000)}",
     "import pandas as pd\nX = pd.DataFrame({'a': range(500_000)})", "import torch\nX = [torch.zeros(1_000_000)]"],
)  # fmt: skip
def test_sizes_are_told_without_pickling(notebook, source):
    assert "ship:" in refusal(notebook(source), "print(X)", limits=CaptureLimits(data_bytes=2_000_000))


def test_missing_names_come_with_the_nearest_one(notebook):
    book = notebook("learning_rate = 1", "def helper():\n    return lerning_rate")
    text = refusal(book, "print(helper(), repotr(1), pritn)")
    assert "3 names" in text
    assert "lerning_rate, used by helper; did you mean learning_rate?" in text
    assert "repotr" in refusal(book, "repotr(loss=1)")
    assert "did you mean report?" in refusal(book, "repotr(loss=1)")


def test_names_that_the_trial_brings_are_not_missing(notebook):
    code = "for i in range(3):\n    report(step=i, loss=lr)\n    if should_stop(): break\ncheckpoint.save(params)\nprint(rank, world_size)"
    captured = notebook().capture(code, parameters=["lr"])
    assert {row.name: row.how for row in captured.captured} == {
        "lr": "parameter", "checkpoint": "builtin", "params": "builtin", "rank": "builtin", "report": "builtin",
        "should_stop": "builtin", "world_size": "builtin",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("x = 1\n%prun x", "line 2: %prun x"),
        ("!unzip x", "line 1: !unzip x"),
        ("if True:\n    !mkdir a", "line 2: !mkdir a"),
        ("files = !ls", "line 1: files = !ls"),
        ("import os\nos?", "line 2: os?"),
        ("%cd data", "line 1: %cd data"),
    ],
)
def test_magics_and_shell_lines_are_named(notebook, code, line):
    assert line in refusal(notebook(), code)


def test_lines_are_counted_from_the_top_of_the_cell(notebook):
    assert "line 12: !rm x" in refusal(notebook(), "x = 1\n!rm x", first_line=11)
    assert "Line 12 of this cell is not Python" in refusal(notebook(), "x = 1\nfor for", first_line=11)

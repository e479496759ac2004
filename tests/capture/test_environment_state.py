"""Environment variables that cells set are there in a trial, and those that stay here are told."""

import os

import pytest

from jupyter_autotrain.capture.differences import DifferenceKind
from jupyter_autotrain.capture.syntax.cells import Cell

SHOW = "import os\nprint(os.environ.get('SCALE_Q'), os.environ.get('MODE_Q'))"


@pytest.fixture(autouse=True)
def _same_variables_afterwards(alone):
    alone("pass")  # what runs the scripts starts before any variable is set
    before = dict(os.environ)
    yield
    for name in set(os.environ) - set(before):
        del os.environ[name]
    os.environ.update(before)


def told(book, code, **options):
    return [(one.kind, one.text, one.origin) for one in book.capture(code, **options).differences]


SETS = {
    "an item": "import os\nos.environ['SCALE_Q'] = '3'",
    "a name of its own": "from os import environ as e\ne['SCALE_Q'] = '3'",
    "set and set again": "import os\nos.environ['SCALE_Q'] = '3'\nos.environ['SCALE_Q'] += '4'",
    "several": "import os\nos.environ.update({'SCALE_Q': '3'}, MODE_Q='fast')",
    "a default": "import os\nos.environ.setdefault('SCALE_Q', '3')",
    "a function": "import os\ndef setup(n):\n    os.environ['SCALE_Q'] = str(n)\nsetup(7)",
}


@pytest.mark.parametrize("cell", SETS.values(), ids=SETS)
def test_a_variable_that_a_cell_set_is_there_in_a_trial(notebook, cell):
    book = notebook(cell)
    book.both(SHOW)
    assert {kind for kind, _, _ in told(book, SHOW)} == {DifferenceKind.REPLAYED}


def test_a_variable_that_a_magic_set_is_there_in_a_trial(notebook):
    book = notebook()
    book.cells += [Cell(1, "%env SCALE_Q=3\nx = 1"), Cell(2, "%set_env MODE_Q fast"), Cell(3, "%env HOME")]
    os.environ.update(SCALE_Q="3", MODE_Q="fast")
    book.both(SHOW)
    assert told(book, SHOW) == [
        (DifferenceKind.REPLAYED, "os.environ['MODE_Q'] = 'fast'", "cell [2]"),
        (DifferenceKind.REPLAYED, "os.environ['SCALE_Q'] = '3'", "cell [1]"),
    ]


def test_a_deleted_variable_is_not_there(notebook):
    book = notebook("import os\nos.environ['SCALE_Q'] = '3'", "del os.environ['SCALE_Q']")
    book.both(SHOW)
    assert told(book, SHOW) == []

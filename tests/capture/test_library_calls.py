"""Calls of earlier cells that change a library: what can be read is set again, others are told with their cells."""

# Cells are written on one line each, however long, so that they read as a list.
# ruff: noqa: E501

import copyreg
import logging
import mimetypes
import re
import warnings

import pytest

from jupyter_autotrain.capture.differences import DifferenceKind
from jupyter_autotrain.errors import CaptureError


@pytest.fixture(autouse=True)
def _same_libraries_afterwards():
    levels = {name: logging.getLogger(name).level for name in ("", "train", "train.a", "train.b")}
    handlers = list(logging.getLogger().handlers)
    table = dict(copyreg.dispatch_table)
    with warnings.catch_warnings():
        yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    logging.getLogger().handlers[:] = handlers
    logging.disable(logging.NOTSET)
    copyreg.dispatch_table.clear()
    copyreg.dispatch_table.update(table)
    mimetypes.init()


def told(book, code, **options):
    return [(one.kind, one.text, one.origin) for one in book.capture(code, **options).differences]


REPLAYED = {
    "warnings": (["import warnings\nwarnings.filterwarnings('error', category=UserWarning)"], "import warnings\ntry:\n    warnings.warn('x')\n    print('went on')\nexcept UserWarning:\n    print('raised')"),
    "a name from a library": (["from warnings import simplefilter as simple\nsimple('error')"], "import warnings\ntry:\n    warnings.warn('x')\n    print('went on')\nexcept UserWarning:\n    print('raised')"),
    "a level": (["import logging", "logging.getLogger('train').setLevel(logging.ERROR)"], "import logging\nprint(logging.getLogger('train').level)"),
    "a logger with a name": (["import logging\nlog = logging.getLogger('train')", "log.setLevel(logging.INFO)"], "print(log.level)"),
    "a value at hand": (["import logging\nlevel = 33", "logging.getLogger('train').setLevel(level)"], "import logging\nprint(logging.getLogger('train').level)"),
    "the last of several": (["import logging\nlogging.getLogger('train').setLevel(10)", "logging.getLogger('train').setLevel(40)", "logging.getLogger('train').setLevel(10)"], "import logging\nprint(logging.getLogger('train').level)"),
    "in a loop": (["import logging\nfor name in ('train.a', 'train.b'):\n    logging.getLogger(name).setLevel(50)"], "import logging\nprint(logging.getLogger('train.a').level, logging.getLogger('train.b').level)"),
    "in a function": (["import logging\ndef quiet():\n    import logging as l\n    l.getLogger('train').setLevel(50)", "quiet()"], "import logging\nprint(logging.getLogger('train').level)"),
    "under a condition": (["import logging\nverbose = False\nif not verbose:\n    logging.getLogger('train').setLevel(50)"], "import logging\nprint(logging.getLogger('train').level)"),
    "logging switched off": (["import logging\nlogging.disable(logging.INFO)"], "import logging\nprint(logging.root.manager.disable)"),
}  # fmt: skip

SETTLED = {
    "a registered function": (["import copyreg\nclass A:\n    x = 1\ndef reduce_a(a): return A, ()", "copyreg.pickle(A, reduce_a)"], "import copyreg\nprint(A in copyreg.dispatch_table)"),
    "a part of a module": (["import mimetypes", "mimetypes.types_map.update({'.tt': 'x/y'})"], "import mimetypes\nprint(mimetypes.types_map.get('.tt'))"),
}  # fmt: skip


@pytest.mark.parametrize(("cells", "code"), REPLAYED.values(), ids=REPLAYED)
def test_a_setting_that_a_call_has_changed_is_set_again(notebook, cells, code):
    book = notebook(*cells)
    book.both(code)
    assert {kind for kind, _, _ in told(book, code)} == {DifferenceKind.REPLAYED}


@pytest.mark.parametrize(("cells", "code"), SETTLED.values(), ids=SETTLED)
def test_a_call_that_changed_a_library_is_told_with_the_line_that_makes_it_again(notebook, cells, code):
    book = notebook(*cells)
    ((kind, text, _),) = told(book, code)
    assert kind is DifferenceKind.NOT_CARRIED
    numbers = [int(number) for number in re.search(r"`setup: \[(.*)\]`", text)[1].split(",")]
    there = book.elsewhere(code, setup=numbers)
    assert there == book._execute(code)
    assert [kind for kind, _, _ in told(book, code, setup=numbers)] == [DifferenceKind.REPLAYED]


def test_a_cell_that_has_not_run_cannot_run_first(notebook):
    with pytest.raises(CaptureError, match=r"names cell \[7\].*\n.*the latest are: 1, 2"):
        notebook("a = 1", "b = 2").capture("print(a)", setup=[7])


def test_options_of_pandas_are_the_same_in_a_trial(notebook):
    pd = pytest.importorskip("pandas")
    with pd.option_context("display.max_rows", 60, "display.float_format", None):
        book = notebook(
            "import pandas as pd\npd.set_option('display.float_format', lambda x: f'{x:.1f}')",
            "pd.options.display.max_rows = 4",
        )
        code = "print(pd.DataFrame({'a': [1.234] * 9}))"
        (text,) = [text for kind, text, _ in told(book, code) if kind is DifferenceKind.NOT_CARRIED]
        assert text == "pandas.options.display.float_format: `setup: [1]` in the header runs its cell first"
        assert book.elsewhere(code, setup=[1]) == book.run(code)


TOLD = {
    "a value that is no text": (["import logging\nclass F:\n    def filter(self, r): return True\nf = F()", "logging.getLogger('train').addFilter(f)"], "logging.getLogger('train').addFilter(f)"),
    "a file": (["import logging", "logging.basicConfig(filename='/dev/null')"], "logging.basicConfig(filename='/dev/null')"),
}  # fmt: skip


@pytest.mark.parametrize(("cells", "call"), TOLD.values(), ids=TOLD)
def test_a_call_that_changed_what_cannot_be_read_is_told(notebook, cells, call):
    text = f"{call}: `setup: [2]` in the header runs its cell first"
    assert told(notebook(*cells), "print(1)") == [(DifferenceKind.NOT_CARRIED, text, "cell [2]")]


QUIET = {
    "shows": "import matplotlib.pyplot as plt\nplt.figure()\nplt.title('x')\nplt.plot([1])\nplt.close()\nnp.e",
    "sleeps and makes folders": "import os, time\ntime.sleep(0)\nos.makedirs('.', exist_ok=True)\nos.getcwd()\nnp.e",
    "acts on data": "a = [3, 1]\na.sort()\na.append(2)\nx = np.zeros(3)\nx.fill(1)\nnp.copyto(x, 2)\nnp.e",
    "ends with its block": "import warnings\nwith warnings.catch_warnings():\n    warnings.simplefilter('ignore')\nwith np.printoptions(precision=2):\n    np.set_printoptions(precision=3)\nnp.e",
    "tests": "np.testing.assert_equal(1, 1)\nnp.e",
    "shows a value": "np.sqrt(4)",
}  # fmt: skip


@pytest.mark.parametrize("cell", QUIET.values(), ids=QUIET)
def test_what_changes_no_library_is_not_told(notebook, cell):
    pytest.importorskip("matplotlib")
    import numpy as np

    with np.printoptions():
        book = notebook("import numpy as np", cell)
        assert told(book, "print(np.e)") == []

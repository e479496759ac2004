"""Settings of libraries that earlier cells changed are the same in a trial."""

# Cells are written on one line each, however long, so that they read as a list.
# ruff: noqa: E501

import csv
import decimal
import gc
import locale
import socket
import sys
import warnings

import numpy as np
import pytest

from jupyter_autotrain.capture.differences import DifferenceKind


@pytest.fixture(autouse=True)
def _same_settings_afterwards():
    import sklearn  # takes seconds: not in each process that collects this file

    numpy = (np.geterr(), np.get_printoptions())
    scikit = sklearn.get_config()
    context = decimal.getcontext().copy()
    limits = (
        sys.getrecursionlimit(),
        csv.field_size_limit(),
        socket.getdefaulttimeout(),
        locale.setlocale(locale.LC_TIME),
    )
    with warnings.catch_warnings():
        yield
    np.seterr(**numpy[0])
    np.set_printoptions(**numpy[1])
    sklearn.set_config(**scikit)
    decimal.setcontext(context)
    sys.setrecursionlimit(limits[0])
    csv.field_size_limit(limits[1])
    socket.setdefaulttimeout(limits[2])
    locale.setlocale(locale.LC_TIME, limits[3])
    gc.enable()


def told(book, code, **options):
    return [(one.kind, one.text, one.origin) for one in book.capture(code, **options).differences]


SETTINGS = {
    "decimal": (["import decimal\ndecimal.getcontext().prec = 4"], "print(decimal.Decimal(1) / 3)"),
    "decimal, by a name of its own": (["from decimal import Decimal, getcontext\nc = getcontext()", "c.prec = 5\nc.traps[__import__('decimal').DivisionByZero] = False"], "print(Decimal(1) / 3, Decimal(1) / 0)"),
    "recursion": (["import sys\nsys.setrecursionlimit(3210)"], "import sys; print(sys.getrecursionlimit())"),
    "numpy errors": (["import numpy as np", "old = np.seterr(all='raise')"], "print(np.geterr())"),
    "numpy printing": (["import numpy as np\ndigits = 3", "np.set_printoptions(precision=digits, suppress=True)"], "print(np.array([1 / 3, 1e-9]))"),
    "set and set again": (["import numpy as np\nnp.set_printoptions(precision=3)", "np.set_printoptions(precision=2)"], "print(np.array([1 / 3]))"),
    "set inside a function": (["import numpy as np\ndef quiet(n=2):\n    np.set_printoptions(precision=n)", "quiet(4)"], "print(np.array([1 / 3]))"),
    "sklearn": (["from sklearn import set_config, get_config\nset_config(assume_finite=True, display='text')"], "print(get_config()['assume_finite'], get_config()['display'])"),
    "a library that the cell uses through another": (["import numpy\nnumpy.seterr(all='raise')", "import sklearn"], "import sklearn, sys\nprint(sys.modules['numpy'].geterr())"),
    "the collector": (["import gc\ngc.disable()"], "import gc; print(gc.isenabled())"),
    "sockets": (["import socket\nsocket.setdefaulttimeout(7.5)"], "import socket; print(socket.getdefaulttimeout())"),
    "csv": (["import csv\ncsv.field_size_limit(10**6)"], "import csv; print(csv.field_size_limit())"),
    "locale": (["import locale\nlocale.setlocale(locale.LC_TIME, 'C.UTF-8')"], "import locale; print(locale.setlocale(locale.LC_TIME))"),
}  # fmt: skip


@pytest.mark.parametrize(("cells", "code"), SETTINGS.values(), ids=SETTINGS)
def test_a_setting_of_an_earlier_cell_is_the_same_in_a_trial(notebook, cells, code):
    book = notebook(*cells)
    book.both(code)
    assert [kind for kind, _, _ in told(book, code)] == [DifferenceKind.REPLAYED]


def test_what_was_set_again_is_told_as_the_call_that_does_it(notebook):
    book = notebook("import numpy as np", "np.seterr(over='raise')")
    assert told(book, "print(np.e)") == [(DifferenceKind.REPLAYED, "numpy.seterr(over='raise')", "cell [2]")]


def test_a_setting_that_was_set_back_is_not_told(notebook):
    book = notebook("import numpy as np\nnp.seterr(over='raise')", "np.seterr(over='warn')")
    assert told(book, "print(np.e)") == []


def test_a_setting_inside_a_finished_block_is_not_state(notebook):
    book = notebook("import numpy as np\nwith np.errstate(all='raise'):\n    x = np.float64(1) / 3")
    assert told(book, "print(np.geterr(), x)") == []


def test_settings_of_a_library_that_the_trial_does_not_use_stay_here(notebook):
    book = notebook("import numpy as np\nnp.set_printoptions(precision=2)")
    captured = book.capture("print(1)")
    assert captured.differences == ()
    assert "numpy" not in captured.script


def test_settings_and_random_numbers_of_torch_are_the_same_in_a_trial(notebook):
    torch = pytest.importorskip("torch")
    book = notebook(
        "import torch\ntorch.manual_seed(0); torch.rand(3)\ntorch.set_default_dtype(torch.float64)",
        "torch.backends.cudnn.deterministic = True\n_ = torch.set_grad_enabled(False)\ntorch.set_printoptions(precision=2)",
    )
    try:
        book.both(
            "w = torch.ones(2, requires_grad=True) / 3\n"
            "print(torch.rand(2), w, w.dtype, (w * 2).requires_grad, torch.backends.cudnn.deterministic)"
        )
    finally:
        torch.set_default_dtype(torch.float32)
        torch.backends.cudnn.deterministic = False
        torch.set_grad_enabled(True)
        torch.set_printoptions(profile="default")


def test_parameters_of_matplotlib_are_the_same_in_a_trial(notebook):
    matplotlib = pytest.importorskip("matplotlib")
    with matplotlib.rc_context():
        book = notebook(
            "import matplotlib.pyplot as plt\nplt.style.use('ggplot')", "plt.rcParams['figure.figsize'] = (3, 2)"
        )
        code = "import matplotlib.pyplot as plt\nprint({k: v for k, v in plt.rcParams.items() if 'backend' not in k and k != 'interactive'})"
        book.both(code)
        assert [text.partition(".update")[0] for _, text, _ in told(book, code)] == ["matplotlib.rcParams"]

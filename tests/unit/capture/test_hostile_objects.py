"""Objects whose own code raises: captured all the same, or refused by their name; never an exception of the capture."""

import re

import pytest

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.looking import refused_by_name
from jupyter_autotrain.errors import CaptureError
from tests.matrices import long_besides

METHODS = (
    "__getattr__", "__getattribute__", "__repr__", "__str__", "__eq__", "__ne__", "__hash__", "__bool__", "__len__",
    "__iter__", "__contains__", "__call__", "__dir__", "__reduce__", "__reduce_ex__", "__getstate__", "__getnewargs__",
    "__sizeof__", "__format__", "__get__", "__array__", "__fspath__", "__index__", "keys", "items",
)  # fmt: skip
PROPERTIES = (
    "__class__", "__dict__", "__module__", "__doc__", "__wrapped__", "__func__", "__self__", "__name__", "__code__",
    "__annotations__", "dtype", "shape", "columns", "grad_fn", "device", "root", "func", "registry", "param_groups",
)  # fmt: skip
BY_DEFAULT = ("__getattr__", "__eq__", "__len__", "__reduce__", "__class__", "__dict__", "shape")
PLACES = {
    "v = [H()]": "print(len(v))",
    "v = H()": "print(v.query('a > @x'), open(v))",
    "def v(x=H()): return 1": "print(v())",
    "class v:\n    h = H()": "print(v)",
}


def method(name):
    return f"class H:\n    def {name}(self, *_, **__): raise RuntimeError('hostile')"


def prop(name):
    return f"class H:\n    @property\n    def {name}(self): raise RuntimeError('hostile')"


def refusal_of(book, cell):
    try:
        book.capture(cell)
    except CaptureError as refusal:
        return str(refusal)
    return ""


@pytest.mark.parametrize("name", long_besides(BY_DEFAULT, (*METHODS, *PROPERTIES)))
def test_an_object_whose_code_raises_is_captured_or_refused_by_its_name(notebook, name):
    hostile = method(name) if name in METHODS else prop(name)
    for made, cell in PLACES.items():
        try:
            book = notebook(hostile, made)
        except RuntimeError:
            continue  # it cannot even be made
        refusal = refusal_of(book, cell)
        assert refusal == "" or re.match(r"1 name .*\n  v\b", refusal), refusal
        assert "inside the capture" not in refusal


def test_what_fails_inside_the_capture_names_the_object_and_our_line_and_asks_for_a_report():
    with pytest.raises(CaptureError) as refusal, refused_by_name("model"):
        looking.module_of(None).no_such_method()
    first, _, last = str(refusal.value).split("\n")
    assert first.startswith("Capturing `model` failed inside the capture: AttributeError: 'str' object has no")
    assert re.search(r"\(looking\.py:\d+\)\.$", first)
    assert last == "Make `model` inside the cell, or leave it out; please report these lines with the object's type."


class UntoldError(Exception):
    def __str__(self):
        raise ValueError


def test_an_exception_that_cannot_be_shown_is_told_by_its_class():
    with pytest.raises(CaptureError, match="UntoldError: UntoldError"), refused_by_name(""):
        raise UntoldError

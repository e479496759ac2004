"""Attributes that earlier cells set on modules and on classes of libraries are told with the line that sets them."""

# Cells are written on one line each, however long, so that they read as a list.

import pytest

from jupyter_autotrain.capture.differences import DifferenceKind
from tests.capture.notebook_fixtures import differences_of

pytestmark = pytest.mark.usefixtures("unchanged_libraries")


def test_what_was_set_is_told_with_its_cell(notebook):
    book = notebook("import string", "string.WIDTH = 12")
    assert differences_of(book, "print(string.WIDTH)") == [
        (DifferenceKind.NOT_CARRIED, "string.WIDTH: `setup: [2]` in the header runs its cell first", "cell [2]")
    ]


def test_what_was_set_back_is_not_told(notebook):
    book = notebook("import textwrap\nold = textwrap.dedent\ntextwrap.dedent = str.upper", "textwrap.dedent = old")
    assert differences_of(book, "print(textwrap.dedent(' a'))") == []


def test_a_secret_set_on_a_module_is_told_and_its_value_stays_here(notebook):
    key = "sk-" + "a1B2c3D4" * 6
    book = notebook("import string", f"string.api_key = '{key}'")
    captured = book.capture("print(string)")
    assert [one.kind for one in captured.differences] == [DifferenceKind.NOT_CARRIED]
    assert key not in captured.script + captured.differences[0].text


def test_what_was_set_on_a_library_that_the_trial_does_not_use_is_no_matter(notebook):
    np = pytest.importorskip("numpy")
    try:
        assert differences_of(notebook("import numpy as np\nnp.K = 3"), "print(1)") == []
    finally:
        del np.K


def test_an_untouched_module_beside_the_notebook_is_not_told(notebook, beside):
    folder = beside("conf_c", "LR = 0.1\nN = 0\nfor _ in range(3): N += 1\n")
    book = notebook("import conf_c", cwd=folder)
    assert differences_of(book, "print(conf_c.LR, conf_c.N)") == []

"""Attributes that earlier cells set on modules and on classes of libraries: told, and set where the told line says so."""

# Cells are written on one line each, however long, so that they read as a list.
# ruff: noqa: E501

import re

import pytest

from jupyter_autotrain.capture.differences import DifferenceKind
from tests.capture.notebook_fixtures import differences_of

pytestmark = pytest.mark.usefixtures("unchanged_libraries")


def check_that_the_told_line_sets_it(book, code):
    told = [text for kind, text, _ in differences_of(book, code) if kind is DifferenceKind.NOT_CARRIED]
    (setup,) = {re.search(r"`setup: \[([\d, ]+)\]`", text)[1] for text in told}
    numbers = [int(number) for number in setup.split(", ")]
    assert {kind for kind, _, _ in differences_of(book, code, setup=numbers)} == {DifferenceKind.REPLAYED}
    assert book.elsewhere(code, setup=numbers) == book.run(code)


PATCHES = {
    "a value": (["import string", "string.WIDTH = 12"], "print(string.WIDTH)"),
    "set twice": (["import string\nstring.WIDTH = 12", "string.WIDTH += 1"], "print(string.WIDTH)"),
    "by setattr": (["import string\nsetattr(string, 'WIDTH', [1, 2])"], "print(string.WIDTH)"),
    "an item": (["import string\nstring.TABLE = {}", "string.TABLE['a'] = 5"], "print(string.TABLE)"),
    "a method, defined above": (["from fractions import Fraction", "def half(self): return self / 2", "Fraction.half = half"], "print(Fraction(3).half())"),
    "a method that uses the notebook": (["from fractions import Fraction\nk = 5", "def times(self): return self * k\nFraction.times = times"], "print(Fraction(3).times())"),
    "a lambda": (["from fractions import Fraction\nk = 7", "Fraction.times = lambda self: self * k"], "print(Fraction(3).times())"),
    "a property": (["from fractions import Fraction\ndef top(self): return self.numerator", "Fraction.top = property(top)"], "print(Fraction(3).top)"),
    "a function replaced": (["import textwrap\ndef shout(text): return text.upper()", "textwrap.dedent = shout"], "print(textwrap.dedent('  a'))"),
    "one library's in another": (["import textwrap, string\nstring.cut = textwrap.shorten"], "print(string.cut('a  b', 9))"),
    "inside a function": (["import string\ndef setup(n):\n    string.WIDTH = n", "setup(3)"], "print(string.WIDTH)"),
    "inside a branch": (["import string\nif True:\n    string.WIDTH = 4"], "print(string.WIDTH)"),
    "by a name of another module": (["import string as s\nq = s", "q.WIDTH = 6"], "import string\nprint(string.WIDTH)"),
}  # fmt: skip


@pytest.mark.parametrize(("cells", "code"), PATCHES.values(), ids=PATCHES)
def test_what_was_set_on_a_library_is_told_with_the_line_that_sets_it(notebook, cells, code):
    check_that_the_told_line_sets_it(notebook(*cells), code)


OWN = {
    "an attribute": "conf_a.LR = 0.25",
    "an item": "conf_a.CFG['depth'] = 9",
    "by a function of the module": "conf_a.use(0.5)",
    "an element": "conf_a.REGISTRY.append('x')",
    "on an object": "conf_a.settings.lr = 3",
    "all of it": "conf_a.use(0.5)\nconf_a.LR *= 2\nconf_a.CFG.update(a=1)\nconf_a.settings.lr = 3",
}


@pytest.mark.parametrize("cell", OWN.values(), ids=OWN)
def test_what_was_set_in_a_module_beside_the_notebook_is_told_with_the_line_that_sets_it(notebook, beside, cell):
    folder = beside(
        "conf_a",
        "LR = 0.1\nCFG = {'depth': 2}\nREGISTRY = []\nclass S:\n    lr = 1\nsettings = S()\n"
        "def use(lr):\n    global LR\n    LR = lr\n",
    )
    book = notebook("import sys\nsys.modules.pop('conf_a', None)\nimport conf_a", cell, cwd=folder)
    check_that_the_told_line_sets_it(book, "print(conf_a.LR, conf_a.CFG, conf_a.REGISTRY, conf_a.settings.lr)")


def test_a_module_that_only_a_helper_imports_is_told_too(notebook, beside):
    beside("conf_b", "LR = 0.1\n")
    folder = beside("helper_b", "import conf_b\ndef rate(): return conf_b.LR\n")
    book = notebook("import conf_b, helper_b", "conf_b.LR = 0.5", cwd=folder)
    check_that_the_told_line_sets_it(book, "print(helper_b.rate())")

"""Tests that a captured cell prints elsewhere what it prints in the notebook."""

# Cells are written on one line each, however long, so that the cases read as a list.
# ruff: noqa: E501

import pytest

from jupyter_autotrain.errors import CaptureError

CASES = {
    "helpers that call helpers": (
        ["def double(x): return 2 * x", "def quad(x):\n    return double(double(x))"],
        "print(quad(3))",
        "12\n",
    ),
    "inheritance and decorators": (
        [
            "import functools",
            "def loud(f):\n    @functools.wraps(f)\n    def inner(*a):\n        return f(*a) + '!'\n    return inner",
            "class Base:\n    def hi(self): return 'base'",
            "class Child(Base):\n    @loud\n    def hi(self): return 'child of ' + super().hi()",
        ],
        "print(Child().hi())",
        "child of base!\n",
    ),
    "a decorated function": (
        ["import functools", "@functools.lru_cache(maxsize=None)\ndef fib(n):\n    return n if n < 2 else fib(n-1) + fib(n-2)"],
        "print(fib(30))",
        "832040\n",
    ),
    "a closure made by a factory": (
        ["base = 100", "def adder(n):\n    def add(x):\n        return x + n + base\n    return add", "add5 = adder(5)"],
        "print(add5(1))",
        "106\n",
    ),
    "closures that share a variable": (
        ["def pair():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n    def get(): return n\n    return up, get",
         "up, get = pair()\nup()"],
        "up(); up(); print(get())",
        "3\n",
    ),
    "lambdas": (["k = 3", "f = lambda x: x * k", "g = [lambda x: x + k][0]"], "print(f(2), g(2))", "6 5\n"),
    "mutually recursive lambdas": (
        ["even = lambda n: True if n == 0 else odd(n - 1)\nodd = lambda n: False if n == 0 else even(n - 1)"],
        "print(even(10))",
        "True\n",
    ),
    "dataclasses and enums": (
        ["from dataclasses import dataclass, field\nfrom enum import Enum",
         "class Color(Enum):\n    RED = 1\n    BLUE = 2",
         "@dataclass\nclass Point:\n    x: int\n    c: Color = Color.RED\n    tags: list = field(default_factory=list)",
         "p = Point(1, Color.BLUE)"],
        "print(p, isinstance(p, Point), p.c is Color.BLUE)",
        "Point(x=1, c=<Color.BLUE: 2>, tags=[]) True True\n",
    ),
    "shadowed builtins": (
        ["list = [3, 1]", "def sum(x): return 'mine'", "def use(): return sum(list)"], "print(use(), list)", "mine [3, 1]\n",
    ),
    "a shadowed print": (["show = print\ndef print(*a): show('mine', *a)"], "print(1)", "mine 1\n"),
    "a name bound again after use": (["k = 2", "def f(x): return x * k", "k = 10"], "print(f(1))", "10\n"),
    "a default from a name bound again": (["k = 2", "def f(x, y=k): return x * y", "k = 10"], "print(f(1), k)", "2 10\n"),
    "a base class defined again": (
        ["class A:\n    def v(self): return 1", "class B(A): pass", "class A:\n    def v(self): return 2"],
        "print(B().v(), A().v(), isinstance(B(), A))",
        "1 2 False\n",
    ),
    "a base class that ran again unchanged": (
        ["class A: pass", "class B(A): pass", "class A: pass"],
        "print(isinstance(B(), A), [c.__name__ for c in B.__mro__])",
        "False ['B', 'A', 'object']\n",
    ),
    "star imports": (["from math import *"], "print(floor(pi))", "3\n"),
    "a star import in the cell": ([], "from math import *\nprint(floor(pi))", "3\n"),
    "conditional imports": (
        ["try:\n    import no_such_module as xp\n    FAST = True\nexcept ImportError:\n    import math as xp\n    FAST = False"],
        "print(xp.floor(2.5), FAST)",
        "2 False\n",
    ),
    "imports inside a package": (
        ["import os.path\nimport xml.etree.ElementTree as ET\nimport collections.abc\nfrom os import path as p"],
        "print(os.path.basename('a/b'), ET.fromstring('<a/>').tag, collections.abc.Mapping.__name__, p.basename('c/d'))",
        "b a Mapping d\n",
    ),
    "recursion": (["def fact(n):\n    return 1 if n < 2 else n * fact(n - 1)"], "print(fact(5))", "120\n"),
    "mutual recursion": (
        ["def even(n): return n == 0 or odd(n - 1)", "def odd(n): return n != 0 and even(n - 1)"], "print(even(8))", "True\n",
    ),
    "type annotations": (
        ["from typing import Sequence", "class Net: pass",
         "def f(x: Sequence['Net'], y: int = 1) -> 'Net | None':\n    z: Later = 3\n    return z"],
        "print(f([]))",
        "3\n",
    ),
    "annotations that are not evaluated": (
        ["from __future__ import annotations\nimport dataclasses",
         "@dataclasses.dataclass\nclass Node:\n    left: Node | None = None\n    right: Undefined = 1"],
        "print(Node())",
        "Node(left=None, right=1)\n",
    ),
    "a future import in the cell": (
        ["one = 1"], "from __future__ import annotations\ndef f(x: Nowhere): return x\nprint(f(one))", "1\n",
    ),
    "global": (
        ["count = 1", "def up():\n    global count\n    count += 1"], "up(); up(); print(count)", "3\n",
    ),
    "global that a function sets first": ([], "def f():\n    global made\n    made = 7\nf()\nprint(made)", "7\n"),
    "comprehension scopes": (
        ["x = 'outer'\nrows = [1, 2]"],
        "print([x for x in rows], x, {y: [z for z in rows] for y in rows}, [w := v for v in rows], w)",
        "[1, 2] outer {1: [1, 2], 2: [1, 2]} [1, 2] 2\n",
    ),
    "class bodies see the module and not each other": (
        ["n = 5"], "class A:\n    n = n + 1\n    m = [n for _ in range(1)]\n    def f(self): return n\nprint(A.n, A.m, A().f())",
        "6 [5] 5\n",
    ),
    "augmented assignment": (["total = 10"], "total += 5\nprint(total)", "15\n"),
    "del": (["a = 1\nb = 2"], "del a\nprint(b)", "2\n"),
    "f-strings and walrus": (["w = 7"], "print(f'{w:>{w}} {(q := w + 1)} {q!r}')", "      7 8 8\n"),
    "match": (
        ["class P:\n    __match_args__ = ('x',)\n    def __init__(self, x): self.x = x", "LIMIT = 3"],
        "match [P(1), {'k': 2}]:\n    case [P(x), {'k': k}] if k < LIMIT:\n        print(x, k)\n    case _:\n        print('no')",
        "1 2\n",
    ),
    "an async cell": (
        ["import asyncio", "async def work(n):\n    await asyncio.sleep(0)\n    return n"],
        "values = await asyncio.gather(work(1), work(2))\nprint(values)",
        "[1, 2]\n",
    ),
    "a registry filled by a decorator": (
        ["REGISTRY = {}", "def register(cls):\n    REGISTRY[cls.__name__] = cls\n    return cls",
         "@register\nclass A:\n    def go(self): return 'went'"],
        "print(REGISTRY['A']().go(), REGISTRY['A'] is A, len(REGISTRY))",
        "went True 1\n",
    ),
    "names that share an object": (["rows = [1]\ntable = {'rows': rows}\nagain = rows"],
                                   "rows.append(2); print(table, again is rows)", "{'rows': [1, 2]} True\n"),
    "functions inside data": (
        ["scale = 2", "def f(x): return scale * x", "steps = {'f': f, 'g': lambda x: f(x) + scale}"],
        "print(steps['f'] is f, steps['g'](1))", "True 4\n",
    ),
    "an instance of an older class": (
        ["class C:\n    def v(self): return 'old'", "c = C()", "class C:\n    def v(self): return 'new'"],
        "print(c.v(), C().v(), isinstance(c, C))", "old new False\n",
    ),
    "an older function kept under an alias": (
        ["def f(): return 1", "old = f", "def f(): return 2"], "print(old(), f())", "1 2\n",
    ),
    "an alias": (["def f(): return 1", "g = f"], "print(g(), g is f)", "1 True\n"),
    "a patched class": (
        ["class C:\n    n = 0\n    def v(self): return 1", "def two(self): return 2", "C.v = two", "C.n = 4"],
        "print(C().v(), C.n)", "2 4\n",
    ),
    "class state that changed": (["class C:\n    n = 0", "def up(): C.n += 1", "up()"], "up(); print(C.n)", "2\n"),
    "a default that was filled": (["def f(x, seen=[]):\n    seen.append(x)\n    return seen", "f(1)"], "print(f(2))", "[1, 2]\n"),
    "definitions under conditions": (
        ["FAST = False", "if FAST:\n    def go(): return 'fast'\nelse:\n    def go():\n        return '''slow\n  and indented'''"],
        "print(go())", "slow\n  and indented\n",
    ),
    "partial and bound methods": (
        ["import functools", "class C:\n    def __init__(self): self.n = 2\n    def m(self, x): return self.n * x",
         "c = C()\nm = c.m\np = functools.partial(c.m, 5)"],
        "c.n = 3; print(m(1), p())", "3 15\n",
    ),
    "cells above that use magics": (
        ["%matplotlib inline\nx = 1\n!ls\ny = x + 1", "%%time\nz = 3\ndef f(): return z", "%%bash\necho hi"],
        "print(x, y, f())", "1 2 3\n",
    ),
    "named tuples and metaclasses": (
        ["from typing import NamedTuple\nfrom abc import ABC, abstractmethod",
         "class P(NamedTuple):\n    x: int\n    y: int = 2", "class B(ABC):\n    @abstractmethod\n    def f(self): ...",
         "class D(B):\n    def f(self): return P(1)", "p = P(5)"],
        "print(D().f(), p, type(p) is P)", "P(x=1, y=2) P(x=5, y=2) True\n",
    ),
    "a static, a class method and a property": (
        ["class C:\n    @staticmethod\n    def s(): return 1\n    @classmethod\n    def c(cls): return cls.s() + 1\n"
         "    @property\n    def p(self): return self.c() + 1"],
        "print(C.s(), C.c(), C().p)", "1 2 3\n",
    ),
    "hashes needed while unpickling": (
        ["from dataclasses import dataclass", "SALT = 7", "def mix(x): return hash((x, SALT))",
         "class K:\n    def __init__(self, x): self.x = x\n    def __hash__(self): return mix(self.x)\n"
         "    def __eq__(self, o): return self.x == o.x", "d = {K(1): 'one'}"],
        "print(d[K(1)])", "one\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_captured_cell_prints_the_same_elsewhere(notebook, name):
    cells, code, printed = CASES[name]
    assert notebook(*cells).both(code) == printed


def test_magics_that_only_concern_the_display_are_left_out_with_a_note(notebook):
    code = "%matplotlib inline\nx = 1\n%config InlineBackend.figure_format = 'retina'\nprint(x)"
    captured = notebook().capture(code, first_line=3)
    assert captured.notes == (
        "Line 3 is left out: `%matplotlib inline` means nothing in a trial; "
        "plt.show() and display(...) keep their pictures there.",
        "Line 5 is left out: `%config InlineBackend.figure_format = 'retina'` means nothing in a trial.",
    )
    assert captured.script == "pass\nx = 1\npass\nprint(x)\n"
    assert captured.source_map[3] == "this cell:6"


def test_other_magics_are_still_refused_and_only_they_are_named(notebook):
    with pytest.raises(CaptureError) as told:
        notebook().capture("%matplotlib inline\n!unzip x\nprint(1)")
    assert "line 2: !unzip x" in str(told.value)
    assert "matplotlib" not in str(told.value)


def test_display_of_the_notebook_is_that_of_the_trial(notebook):
    book = notebook("from IPython.display import display", "def show(x):\n    display(x)")
    captured = book.capture("show(1)\ndisplay(2)")
    assert "display" not in captured.script.split("def show")[0]
    assert book.row("display(2)", "display").how == "builtin"
    assert notebook().elsewhere("display('x')") == "x\n"

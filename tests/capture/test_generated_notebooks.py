"""Random notebooks: shadowing, closures, re-run cells, rebinding; the captured cell must print the same elsewhere."""

# Cells are written on one line each, however long, so that they read as a list.
# ruff: noqa: E501

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from jupyter_autotrain.errors import CaptureError

NAMES = ("a", "b", "c", "sum", "len")
FUNCTIONS = ("f", "g", "h", "max")
CLASSES = ("A", "B")


def fill(template, names, functions, classes, numbers):
    out = template
    for mark, pool in (("N", names), ("F", functions), ("C", classes), ("I", numbers)):
        for index, value in enumerate(pool):
            out = out.replace(f"<{mark}{index}>", str(value))
    return out


CELLS = (
    "<N0> = <I0>",
    "<N0> = [<I0>, <I1>]",
    "<N0> = <N1>",
    "<N0> = {'k': <F0>, 'n': <N1>}",
    "<N0> = <N1> = [<I0>]",
    "<N0> = <F0>(<I0>)",
    "<N0> = [<F0>, <F1>][0]",
    "def <F0>(x):\n    return (x, <N0>, <I0>)",
    "def <F0>(x, y=<N0>):\n    return (x, y, <N1>)",
    "def <F0>(x):\n    return <F1>(x) if x > <I0> else (x, <N0>)",
    "def <F0>(x):\n    return [<N0> for <N0> in (x, <I0>)] + [<N1>]",
    "<F0> = lambda x: (x, <N0>, <I1>)",
    "def make(n):\n    def inner(x):\n        return (x, n, <N0>)\n    return inner\n<F0> = make(<I0>)",
    "def count():\n    n = <I0>\n    def up(x):\n        nonlocal n\n        n += 1\n        return n\n    return up\n<F0> = count()",
    "<F0> = <F1>",
    "def twice(f):\n    def run(x):\n        return (f(x), f(x), <N0>)\n    return run\n@twice\ndef <F0>(x):\n    return x + <I0>",
    "class <C0>:\n    v = <I0>\n    def m(self, x):\n        return (self.v, x, <N0>)",
    "class <C0>(<C1>):\n    w = <I1>\n    def m(self, x):\n        return ('sub', super().m(x))",
    "<N0> = <C0>()",
    "<C0>.v = <I0>",
    "<N0> = <C0>().m",
    "def <F0>(x):\n    global <N0>\n    <N0> = x\n    return x",
    "from math import floor as <F0>",
    "import math as <N0>",
    "del <N0>",
    "for <N0> in range(3):\n    <N1> = <N0>",
    "if <I0> > 4:\n    def <F0>(x):\n        return ('big', <N0>)\nelse:\n    <F0> = abs",
)  # fmt: skip
SHOW = """
def show(value, depth=0):
    if depth > 4:
        return '...'
    if isinstance(value, dict):
        return {k: show(v, depth + 1) for k, v in value.items()}
    if type(value).__name__ == 'list' or isinstance(value, tuple):
        return [show(v, depth + 1) for v in value]
    if callable(value) and not isinstance(value, type):
        try:
            return ['called', show(value(1), depth + 1), show(value(7), depth + 1)]
        except Exception as error:
            return type(error).__name__
    if hasattr(value, 'm'):
        return ['m', show(value.m, depth + 1)]
    return repr(value) if isinstance(value, (int, float)) else type(value).__name__
"""
FINAL = (
    "print('<N0>', show(<N0>), show(<N1>))",
    "print('<F0>', show(<F0>), <F0> is <F1>)",
    "print('<C0>', show(<C0>()), isinstance(<C0>(), <C1>))",
    "<N0> += <N0>\nprint(show(<N0>), show(<N2>))",
    "def <F0>(x):\n    return (<F1>, <N0>)\nprint(show(<F0>))",
    "print([show(<N0>) for _ in range(2)], show(lambda x: <F0>(x)))",
    "<N0>, <N1> = <N1>, <N0>\nprint(show([<N0>, <N1>]), <N0> is <N1>)",
)


def cells_of(templates):
    pools = (
        st.lists(st.sampled_from(NAMES), min_size=3, max_size=3),
        st.lists(st.sampled_from(FUNCTIONS), min_size=2, max_size=2),
        st.permutations(CLASSES),
        st.lists(st.integers(0, 9), min_size=2, max_size=2),
    )
    return st.builds(fill, st.sampled_from(templates), *pools)


START = [
    "a = 1; b = [2]; c = 3",
    "def f(x): return ('f', x)\ndef g(x): return ('g', x, a)\nh = lambda x: x",
    "class A:\n    v = 1\n    def m(self, x): return ('A', x, b)",
    "class B(A):\n    pass",
]


@settings(derandomize=True, max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.one_of(cells_of(CELLS), st.integers(0, 8)), min_size=1, max_size=9), st.lists(cells_of(FINAL), min_size=1, max_size=3)
)  # fmt: skip
def test_a_generated_notebook_prints_the_same_elsewhere(notebook, steps, final):
    book = notebook(SHOW, *START)
    ran = []
    for step in steps:
        source = step if isinstance(step, str) else (ran or START)[step % len(ran or START)]
        try:
            book.run(source)
        except Exception:  # noqa: BLE001 - a cell that fails half-way is part of the game
            continue
        finally:
            ran.append(source)
    code = "\n".join(final)
    note("\n# ---\n".join([*ran, "# === the cell", code]))
    try:
        script = book.export(code)
    except CaptureError as error:
        assert "not exist" in str(error)  # noqa: PT017 - any other refusal is a fault
        return
    note(script[script.index("# The cell, with") :])
    try:
        here = book._execute(code)
    except Exception:  # noqa: BLE001 - a cell that fails here may fail anywhere
        return
    assert book.alone(script) == here

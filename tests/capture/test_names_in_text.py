"""Names that only the text of a known call has travel with the cell; text that is not known is told."""

# Cells are written on one line each, however long, so that the cases read as a list.
# ruff: noqa: E501

import pytest

TABLE = "import pandas as pd\ndf = pd.DataFrame({'a': [1, 2, 3], 'y': [4, 5, 6]})"
LIGHT = """\
import sys, types
class Table:
    a = [1, 2, 3]
    def query(self, text):
        frame = sys._getframe(1)
        rows = [{'a': a, **frame.f_globals, **frame.f_locals} for a in self.a]
        return types.SimpleNamespace(a=[row['a'] for a, row in zip(self.a, rows) if eval(text.replace('@', ''), {}, row | {'a': a})])
df = Table()
"""
FIT = """\
import re, sys
def ols(formula, data):
    frame = sys._getframe(1)
    names = {**frame.f_globals, **frame.f_locals, **{key: data[key] for key in data}}
    return eval(formula.split('~')[1], {}, names)
"""

CASES = {
    "a query": ([TABLE, "limit = 1"], "print(df.query('a > @limit').a.tolist())", "[2, 3]\n"),
    "a query with a function": ([LIGHT, "def low(): return 2"], "print(df.query('a >= @low()').a)", "[2, 3]\n"),
    "a query in a helper": ([LIGHT, "limit = 1", "def f(): return df.query('a > @limit').a"], "print(f())", "[2, 3]\n"),
    "a query kept in a variable": ([LIGHT, "limit = 1\nrule = 'a > @limit'"], "print(df.query(rule).a)", "[2, 3]\n"),
    "a query bound in the cell": ([LIGHT, "limit = 1"], "rule = 'a > ' + '@limit'\nother = 'a > @limit'\nprint(df.query(other).a)", "[2, 3]\n"),
    "a query that is an f-string": ([LIGHT, "limit = 1\ncolumn = 'a'"], "n = 3\nprint(df.query(f'{column} > @limit and a < {n}').a)", "[2]\n"),
    "a query over locals": ([LIGHT, "limit = 1"], "def f(limit): return df.query('a > @limit').a\nprint(f(2))", "[3]\n"),
    "eval of a table": ([TABLE, "k = 10"], "print(df.eval('b = a * @k').b.tolist())", "[10, 20, 30]\n"),
    "eval of pandas": ([TABLE, "u, v = df.a, df.y"], "print(pd.eval('u + v').tolist())", "[5, 7, 9]\n"),
    "a formula": ([FIT, "def half(x): return [v / 2 for v in x]"], "print(ols('y ~ half(x)', {'x': [2, 4]}))", "[1.0, 2.0]\n"),
    "a formula by its keyword": ([FIT, "def half(x): return [v / 2 for v in x]"], "print(ols(formula='y ~ half(x)', data={'x': [2]}))", "[1.0]\n"),
    "an f-string with a specification": (["width, digits = 8, 2"], "print(f'{3.14159:{width}.{digits}f}')", "    3.14\n"),
    "format with all globals": (["name = 'net'\nwidth = 6"], "print('{name:>{width}}|'.format(**globals()))", "   net|\n"),
    "format_map": (["cfg = {'a': 1}"], "print('{cfg[a]}'.format_map(globals()), '{cfg}'.format(**vars()))", "1 {'a': 1}\n"),
    "a text of format kept in a variable": (["name = 'net'\nform = 'my {name}'"], "print(form.format(**locals()))", "my net\n"),
    "percent": (["name = 'net'"], "print('%(name)s!' % globals())", "net!\n"),
    "a template": (["name = 'net'\nfrom string import Template"], "print(Template('$name ${name}').substitute(globals()))", "net net\n"),
    "eval": (["a, b = 1, 2"], "print(eval('a + b'))", "3\n"),
    "eval of a variable's text": (["a, b = 1, 2\nsum_ = 'a + ' + 'b'"], "print(eval(sum_))", "3\n"),
    "eval of a table of texts": (["a = 4\nrules = {'one': 'a * 2'}"], "print(eval(rules['one']))", "8\n"),
    "eval of an f-string": (["layer_1 = 'first'"], "n = '1'\nprint(eval(f'layer_{n}'))", "first\n"),
    "exec": (["k = 5"], "exec('def f():\\n    return k\\nmade = f()')\nprint(made)", "5\n"),
    "exec of a variable's text": (["k = 5\ncode = 'made = k + 1'"], "exec(code)\nprint(made)", "6\n"),
    "eval of compiled text": (["k = 5"], "print(eval(compile('k + 1', '<text>', 'eval')))", "6\n"),
    "eval with names of its own": (["k = 5"], "print(eval('k', {'k': 1}))", "1\n"),
    "globals by key": (["k = 5\nwhich = 'k'"], "print(globals()['k'], globals()[which], globals().get('k'), 'k' in globals(), 'none' in globals())", "5 5 5 True False\n"),
    "names made by text": ([], "globals()['made'] = 3\nexec('x = ' + str(4))\nprint(made, x)", "3 4\n"),
    "timeit": (["import timeit", "calls = []\ndef f(): calls.append(1)"], "timeit.timeit('f()', number=3, globals=globals())\nprint(len(calls))", "3\n"),
    "text annotations": (["class Net: pass"], "from typing import get_type_hints\ndef f(x: 'Net') -> 'list[Net]': return x\nprint(get_type_hints(f)['x'] is Net)", "True\n"),
    "a text that only looks like names": (["import threading\nb = threading.Lock()\nlimit = threading.Lock()", LIGHT], "print(df.query('a > 2').a, 'mail @limit {b}', '%(b)s')", "[3] mail @limit {b} %(b)s\n"),
    "a column called like something that cannot travel": (["import threading\ny = threading.Lock()", FIT, "data = {'y': 1, 'x': 2}"], "print(ols('y ~ x', data))", "2\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_names_in_the_text_of_known_calls_travel(notebook, name):
    cells, code, printed = CASES[name]
    assert notebook(*cells).both(code) == printed


def told(notebook, cell, *cells):
    return [str(one.text) for one in notebook(*cells).capture(cell).differences]


@pytest.mark.parametrize(
    ("cells", "cell", "call"),
    [
        (["k = 1"], "import sys\nprint(eval(sys.argv[0] and 'k'))", "eval(sys.argv[0] and 'k')"),
        (["k = 1"], "text = 'k'.strip()\nexec(text)", "exec(text)"),
        (["k = 1"], "print([globals()[name] for name in ('k',)])", "globals()[name]"),
        (["k = 1"], "print(sorted(globals()))", "sorted(globals())"),
        (["k = 1"], "print(len(locals()), len(vars()))", "len(locals())"),
        (["k = 1"], "text = '%(k)s'.lower()\nprint(text % globals())", "text % globals()"),
        (["k = 1"], "text = '{k}'.lower()\nprint(text.format(**globals()))", "text.format(**globals())"),
        (["k = 1", "def f(text): return eval(text)"], "print(f('k'))", "eval(text)"),
    ],
)
def test_text_that_is_not_known_is_told_with_its_call(notebook, cells, cell, call):
    text = f"names that only {call} reads, as they are not known before it runs: write them in the cell too"
    assert text in told(notebook, cell, *cells)


def test_what_is_known_and_what_is_no_text_is_not_told(notebook):
    for cell in (
        "print(eval('k'))",
        "globals()['x'] = k",
        "model.eval()",
        "def f():\n    x = 1\n    return locals()\nf()",
        "print(df.query(rule))",
    ):
        assert told(notebook, cell, LIGHT, "k = 1\nrule = 'a > 1'\nclass model:\n    eval = print") == []


def test_a_name_in_a_text_that_cannot_travel_is_told_and_not_refused(notebook):
    (text,) = told(notebook, "print(ols('y ~ x', {'x': 3}))", "import threading\nx = threading.Lock()", FIT)
    assert text == "x, which a text names: a lock"


def test_names_of_text_come_from_their_cell(notebook):
    book = notebook(TABLE, "limit = 1", "def fit(formula, data): pass\ndf2 = df\ny = 5")
    assert book.row("df.query('a > @limit')", "limit").origin == "cell [2]"
    captured = book.capture("fit(formula='y ~ limit', data=df)")
    assert {row.name for row in captured.captured} == {"fit", "df", "limit"}

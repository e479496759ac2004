"""The table shown before submit: origin, way of travel, size, staleness."""

# Cells are written on one line each, however long, so that they read as a list.

from jupyter_autotrain import capture


def test_the_table_shows_every_name_aligned(notebook):
    book = notebook("import math\nk = [1, 2]", "def area(r):\n    return math.pi * r * k[0]")
    text = capture.table(book.capture("report(area=area(lr))", parameters=["lr"])).text()
    head, *rows = text.splitlines()
    assert head.split() == ["name", "travels", "as", "from", "size"]
    assert [row.split()[:2] for row in rows] == [
        ["lr", "parameter"], ["report", "builtin"], ["math", "import"], ["area", "source"], ["k", "data"],
    ]  # fmt: skip
    assert {row[head.index("from") :].split("  ")[0] for row in rows} == {"search", "trial", "cell [1]", "cell [2]"}
    assert rows[-1].split()[-1] == "B"


def test_a_cell_that_needs_nothing_says_so(notebook):
    assert capture.table(notebook().capture("print(1)")).text() == "The cell needs nothing of the notebook."


def test_data_made_by_a_function_that_changed_since_is_stale(notebook):
    book = notebook("def helper(): return 1", "def make(): return helper()", "data = make()")
    assert book.row("data", "data").stale == ""
    book.run("def helper(): return 2")
    assert book.row("data", "data").stale == "made before cell [4] bound helper again"


def test_data_made_from_a_name_bound_before_it_on_the_same_line_is_fresh(notebook):
    book = notebook("first = [1]; second = list(first)")
    assert book.row("second", "second").stale == ""
    book.run("first = [2]")
    assert book.row("second", "second").stale == "made before cell [2] bound first again"


def test_running_the_same_cell_again_makes_nothing_stale(notebook):
    source = "scale = 2\ndef make(): return scale"
    book = notebook(source, "data = make()", source)
    assert book.row("data", "data").stale == ""


def test_an_alias_of_a_function_defined_again_is_stale(notebook):
    book = notebook("class Base: pass", "class Net(Base): pass", "class Base:\n    new = 1")
    row = book.row("Net", "Net")
    assert (row.how, row.stale) == ("data", "by value: made before cell [3] bound Base again")


def test_a_definition_whose_cell_ran_again_without_it_is_stale(notebook):
    book = notebook()
    book.run("def old(): return 1", cell_id="x")
    book.run("def new(): return 2", cell_id="x")
    assert book.row("old()", "old").stale == "its cell ran again as cell [2], without old"
    assert book.row("new()", "new").stale == ""


def test_a_value_bound_again_after_its_user_was_written_is_stale(notebook):
    book = notebook("scale = 2", "def f(x): return x * scale", "scale = 3")
    assert book.row("f(1)", "scale").stale == "cell [3] bound scale again after f (cell [2])"


def test_an_instance_of_an_older_class_is_stale(notebook):
    book = notebook("class C:\n    a = 1", "c = C()", "class C:\n    a = 2")
    assert book.row("c", "c").stale == "an instance of an older C"


def test_only_what_the_cell_needs_is_captured(notebook):
    book = notebook("import json, math\nbig = [0] * 1000\nsmall = 1", "def f(): return small", "def g(): return big")
    assert {row.name for row in book.capture("print(f())").captured} == {"f", "small"}


def test_a_name_the_cell_binds_itself_is_not_taken_from_the_notebook(notebook):
    book = notebook("net = [0] * 1000\ntotal = 5\nrow = 1")
    code = (
        "def main():\n    return net, total\nnet = 1\ntotal = 2\nprint(main())\n"
        "for row in [3]: print(row)\nwith open('/dev/null') as f: print([row for row in f])"
    )
    assert book.capture(code).captured == ()


def test_annotations_alone_bring_no_data(notebook):
    book = notebook("model = [0] * 1000", "from typing import Literal\ndef f(x: Literal['model'] = 'model'): return x")
    assert {row.name for row in book.capture("print(f())").captured} == {"f", "Literal"}


def test_the_script_is_the_notebooks_own_text_in_its_own_order(notebook):
    book = notebook(
        "import math", "K = 2  # a remark is not data", "# above\n@staticmethod\ndef half(x):  # kept\n    return x / K"
    )
    assert book.capture("y = half(3)\nprint(math.floor(y))").script == (
        "import math\n\n"
        "K = 2\n\n\n"
        "@staticmethod\ndef half(x):  # kept\n    return x / K\n\n"
        "y = half(3)\nprint(math.floor(y))\n"
    )  # fmt: skip


def test_every_line_knows_where_it_comes_from(notebook):
    book = notebook("import math", "\n\ndef half(x):\n    return x / 2")
    captured = book.capture("y = half(3)\nprint(y)", first_line=5)
    lines = dict(zip(captured.script.splitlines(), captured.source_map, strict=True))
    assert lines["def half(x):"] == "cell [2]:3"
    assert lines["    return x / 2"] == "cell [2]:4"
    assert lines["print(y)"] == "this cell:6"
    assert lines[""] == ""


def test_futures_stay_first_and_lines_stay_put(notebook):
    code = "'''doc'''\nfrom __future__ import annotations\nx: Nowhere = 1\n1 / x"
    captured = notebook().capture(code)
    assert captured.script.splitlines()[0] == "from __future__ import annotations"
    assert captured.source_map[captured.script.splitlines().index("1 / x")] == "this cell:4"

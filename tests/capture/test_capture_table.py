"""The table shown before submit: origin, way of travel, size, staleness."""

# Cells are written on one line each, however long, so that they read as a list.
# ruff: noqa: E501

import contextlib


def test_a_failed_redefinition_leaves_the_live_one_marked(notebook):
    book = notebook("def f(): return 1")
    with contextlib.suppress(ZeroDivisionError):
        book.run("1 / 0\ndef f(): return 2")
    assert book.both("print(f())") == "1\n"
    assert book.row("f()", "f").stale == "cell [2] defines f again, but the live one is from cell [1]"


def test_searched_literals_are_overridden_and_others_are_not(notebook):
    code = "lr = 1e-3\nwidth: int = (\n    32\n)\na, lr2 = 1, 'x'\nb = lr = 2\nother = 5\nif True:\n    lr2 = 3\nprint(lr, width, lr2)"
    script = notebook().capture(code, parameters=["lr", "width", "lr2"]).script
    assert script == (
        'lr = __autotrain_override__("lr", 1e-3)\nwidth: int = (\n    __autotrain_override__("width", 32)\n)\n'
        "a, lr2 = 1, __autotrain_override__(\"lr2\", 'x')\nb = lr = 2\nother = 5\n"
        "if True:\n    lr2 = 3\nprint(lr, width, lr2)\n"
    )
    printed = notebook().elsewhere("lr = 1e-3\nprint(lr, params.lr, params['lr'])", {"lr": 0.5})
    assert printed == "lr = 0.001 in the cell; this run uses 0.5 (search)\n0.5 0.5 0.5\n"


def test_display_prints_where_there_is_no_ipython(notebook):
    assert notebook().elsewhere("display(1)") == "1\n"

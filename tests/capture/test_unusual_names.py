"""Names that are not ASCII, or one name in two spellings, or the names of one letter in two sizes."""

# Cells are written on one line each, however long, so that the cases read as a list.
# ruff: noqa: E501, RUF001

import pytest

from jupyter_autotrain import capture, header
from jupyter_autotrain.capture.syntax.cells import Cell
from jupyter_autotrain.errors import HeaderError

CASES = {
    "letters of other scripts": (["变量 = [1]\nφ_state = {'é': 2}", "def größe(x): return x + φ_state['é']", "class Ärger:\n    ñ = 3"], "print(变量, größe(1), Ärger.ñ, Ärger().ñ)", "[1] 3 3 3\n"),
    "two spellings of one name": (["ﬁ = 3\nℌ = [4]", "def eﬃcient(ﬁ=ﬁ): return ﬁ + H[0]"], "print(fi, H, efficient(), eﬃcient(ﬁ=1))", "3 [4] 7 5\n"),
    "names that one file system takes for one": (["X = [1]\nx = [2]\nXx = [3]\nxX = [4]"], "print(X, x, Xx, xX)", "[1] [2] [3] [4]\n"),
    "long names": ([f"{'长' * 120} = [1]\n{'a' * 300} = [2]"], f"print({'长' * 120}, {'a' * 300})", "[1] [2]\n"),
    "names that share an object": (["φ = [1]\nψ = {'φ': φ}"], "φ.append(2); print(ψ)", "{'φ': [1, 2]}\n"),
    "a global of another script": (["число = 1\ndef up():\n    global число\n    число += 1"], "up(); print(число)", "2\n"),
    "a text that names one": (["préfixe = 'p'"], "print('{préfixe}'.format(**globals()), eval('préfixe'), globals()['préfixe'])", "p p p\n"),
    "import under another name": (["import math as μ\nfrom math import floor as этаж"], "print(μ.floor(2.5), этаж(3.5))", "2 3\n"),
    "underscores": (["_ = 5\n__ = [6]\n___ = '7'\n_3 = 8"], "print(_, __, ___, _3)", "5 [6] 7 8\n"),
    "an underscore of a loop": (["_ = 5"], "for _ in range(2): pass\nprint(_, [_ for _ in 'ab'])", "1 ['a', 'b']\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_unusual_names_travel(notebook, name):
    cells, code, printed = CASES[name]
    assert notebook(*cells).both(code) == printed


def test_data_lies_in_one_file_that_every_file_system_takes(notebook):
    book = notebook("φ, X, x = [1], [2], [3]")
    assert list(book.capture("print(φ, X, x)").data) == ["values"]
    assert book.both("print(φ, X, x)") == "[1] [2] [3]\n"


def test_a_searched_name_may_be_of_any_script_and_overrides_the_cell_behind_other_letters(notebook):
    cell = "é = 'ü'; α = 1e-3; print(é, α, params['α'])"
    assert notebook().elsewhere(cell, {"α": 0.5}) == "α = 0.001 in the cell; this run uses 0.5 (search)\nü 0.5 0.5\n"


def test_lines_keep_their_number_behind_other_letters(notebook):
    book = notebook("def größe(x):\n    é = 'é'; return x")
    captured = book.capture("y = 'ü'\nprint(größe(y))", first_line=4)
    assert captured.source_map[-2:] == ("this cell:4", "this cell:5")
    assert "cell [1]:2" in captured.source_map


def test_the_header_takes_names_as_python_does(tmp_path):
    context = header.HeaderContext(tmp_path, {}, ())
    text = "objective: maximize précision\nsearch:\n  α: loguniform(1e-4, 1)\n  ﬁ: choice(1, 2)\nreturns: [φ_state, ﬁx]\n---\nreport(précision=α)"
    parsed = header.parse_cell("", text, context).header
    assert set(parsed.search) == {"α", "fi"}
    assert parsed.returns == ("φ_state", "fix")
    assert parsed.objective[0].metric == "précision"
    with pytest.raises(HeaderError, match="expected a variable name"):
        header.parse_cell("", "returns: [lambda]\n---\nx = 1", context)


def test_an_objective_of_other_letters_is_found_among_the_reports(notebook):
    capture.check_reports(notebook().capture("report(précision=1, ﬁt=2)").reports, "précision")
    capture.check_reports(notebook().capture("report(précision=1, ﬁt=2)").reports, "fit")


def test_a_cell_is_read_with_bytes_that_only_text_may_hold(notebook):
    assert notebook().both("x = 'a\u2028b\x0cc'\nprint(len(x))") == "5\n"
    assert Cell(1, "").label == "cell [1]"

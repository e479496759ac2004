"""Tables as text: aligned, with no padding at the end of a line and no empty column."""

from jupyter_autotrain.core.table import table


def test_columns_are_aligned_and_empty_ones_are_left_out():
    rows = [["loss", "", "12"], ["accuracy", "", "3"]]
    assert table(["name", "stale", "size"], rows, right=("size",)) == "name      size\nloss        12\naccuracy     3"


def test_no_line_ends_in_blanks():
    text = table(["name", "why"], [["a", "a long reason"], ["b", ""]])
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


def test_a_table_without_rows_has_no_columns():
    assert table(["name"], []) == ""

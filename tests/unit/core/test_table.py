"""Tables as text: aligned, with no padding at the end of a line and no empty column."""

from jupyter_autotrain.core.table import WIDTH, Table


def test_columns_are_aligned_and_empty_ones_are_left_out():
    rows = [["loss", "", "12"], ["accuracy", "", "3"]]
    assert (
        Table(["name", "stale", "size"], rows, right=("size",)).text()
        == "name      size\nloss        12\naccuracy     3"
    )


def test_no_line_ends_in_blanks():
    text = Table(["name", "why"], [["a", "a long reason"], ["b", ""]]).text()
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


def test_a_table_without_rows_has_no_columns():
    assert Table(["name"], []).text() == ""


def test_a_long_reason_goes_on_below_at_a_blank_and_no_line_is_wider_than_80():
    reason = "the node gpu1 has 2 GPUs of kind A100 and both are taken by trials of the experiment digits@3"
    lines = Table(["trial", "state", "reason"], [["1", "WAITING", reason], ["2", "RUNNING", ""]]).text().splitlines()
    assert max(len(line) for line in lines) <= WIDTH
    assert lines[1].startswith("1      WAITING  the node gpu1")
    assert " ".join(" ".join(lines[1:-1]).split()) == f"1 WAITING {reason}"
    assert lines[-1] == "2      RUNNING"


def test_columns_for_which_there_is_no_room_stand_below_under_the_first_one():
    heads = ["trial", *(f"parameter_{number}" for number in range(12))]
    text = Table(heads, [["1", *["1.123456"] * 12], ["2", *["2.123456"] * 12]]).text()
    assert max(len(line) for line in text.splitlines()) <= WIDTH
    assert [line.split()[0] for line in text.splitlines()] == ["trial", "1", "2"] * 3
    assert [head for line in text.splitlines()[::3] for head in line.split()[1:]] == heads[1:]


def test_as_html_everything_is_escaped_and_nothing_is_cut():
    table = Table(["name", "why"], [["<b>", "x" * 200 + "\x1b[31m"]], more="and 1 more")
    assert table.html() == (
        '<table><thead><tr><th scope="col">name</th><th scope="col">why</th></tr></thead>'
        f"<tbody><tr><td>&lt;b&gt;</td><td>{'x' * 200}</td></tr></tbody></table><p>and 1 more</p>"
    )


def test_a_table_without_names_of_columns_shows_no_heads():
    table = Table([""], [["one"], ["two"]])
    assert table.text() == "one\ntwo"
    assert "<th" not in table.html()

"""Text found in a log: every match of all that was printed, as a terminal shows it, with the lines around it."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_autotrain.views.log_search import MOST_MATCHES, search_json
from jupyter_autotrain.views.terminal_text import rendered

COLORS = re.compile(r"\x1b\[[\d;]*m")


@pytest.fixture
def log(tmp_path):
    def written(data):
        (tmp_path / "stdout").write_bytes(data)
        return tmp_path

    return written


def search(directory, text, match=1):
    return search_json(directory, "stdout", text, match)


def at_place(found, text):
    """Where the match that is shown lies in the text: its line, without colours."""
    shown = COLORS.sub("", found["text"])
    begins = [match.start() for match in re.finditer(re.escape(text), shown, re.IGNORECASE)]
    before = shown[: begins[found["place"]]]
    return before.count("\n"), shown.splitlines()[before.count("\n")]


def test_each_match_of_a_long_log_is_shown_with_the_lines_around_it(log):
    lines = [f"epoch {number}: " + ("NaN, again nan" if number % 5_000 == 0 else "fine") for number in range(100_000)]
    directory = log("\n".join(lines).encode())
    for match in (1, 2, 25, 40, 99):
        found = search(directory, "nan", match)
        number = (min(match, 40) - 1) // 2 * 5_000
        assert (found["total"], found["match"]) == (40, min(match, 40))
        assert at_place(found, "nan")[1] == lines[number]
        assert found["left_out"] == (f"{number - 100} lines" if number else "")
        assert len(found["text"].splitlines()) <= 201


def test_what_a_progress_bar_has_overwritten_is_not_found_and_colours_are_no_obstacle(log):
    directory = log(b"10%\r20%\r100%\n\x1b[31mlo\x1b[0mss is nan\n")
    assert search(directory, "20%")["total"] == 0
    assert at_place(search(directory, "loss"), "loss") == (1, "loss is nan")
    assert "\x1b[" in search(directory, "loss")["text"]


def test_nothing_is_found_in_a_log_that_is_empty_or_not_there(log, tmp_path):
    nothing = {"total": 0, "match": 0, "text": "", "left_out": "", "place": 0}
    assert search(tmp_path, "x") == nothing
    assert search(log(b""), "x") == nothing


def test_matches_without_end_and_a_line_without_end_are_bounded(log):
    directory = log(b"a" * 3_000_000 + b"\n" + b"a\n" * 200_000)
    found = search(directory, "a", MOST_MATCHES)
    assert MOST_MATCHES <= found["total"] < 2 * MOST_MATCHES + 1_000_000
    assert len(found["text"]) < 1_000_000


def test_what_is_no_regular_file_is_not_read(tmp_path):
    (tmp_path / "stdout").symlink_to("/etc/passwd")
    with pytest.raises(OSError, match="not a regular file"):
        search(tmp_path, "root")


LINE = st.sampled_from(["loss", "Loss 1", "a\rloss", "\x1b[1mlo\x1b[0mss loss", "", "é É" * 3, "x" * 5_000])


@settings(max_examples=60)
@given(st.lists(LINE, max_size=40), st.sampled_from(["loss", "s", "é", "zz"]), st.data())
def test_matches_are_those_of_the_rendered_lines(tmp_path_factory, lines, text, data):
    directory = tmp_path_factory.mktemp("log")
    (directory / "stdout").write_text("\n".join(lines), newline="")
    plain = [COLORS.sub("", line) for line in rendered(lines)]
    in_lines = [number for number, line in enumerate(plain) for _ in re.findall(text, line, re.IGNORECASE)]
    match = data.draw(st.integers(1, max(len(in_lines), 1)))
    found = search(directory, text, match)
    assert found["total"] == len(in_lines)
    if in_lines:
        assert at_place(found, text) == (in_lines[match - 1], plain[in_lines[match - 1]])

"""The end of a log, as a terminal would show it, and what stands before it."""

import os
import time

import pytest

from jupyter_autotrain.views.log_window import LogTailReader
from jupyter_autotrain.views.terminal_text import MOST_CHARACTERS, rendered


def tail(path):
    read = LogTailReader(path).read()
    return read.text, read.left_out


def test_the_tail_of_a_long_log_is_its_last_whole_lines_and_says_how_many_it_leaves_out(tmp_path):
    path = tmp_path / "stdout"
    path.write_text("".join(f"line {i}\n" for i in range(1_440)))
    text, left_out = tail(path)
    assert text.splitlines() == [f"line {i}" for i in range(1_240, 1_440)]
    assert left_out == "1,240 lines"
    assert tail(tmp_path / "none") == ("", "")


def test_a_log_that_grows_is_counted_on_from_where_counting_ended(tmp_path):
    path = tmp_path / "stdout"
    path.write_text("".join(f"line {i}\n" for i in range(201)))
    log = LogTailReader(path)
    assert log.read().left_out == "1 line"
    with path.open("a") as file:
        file.write("one\ntwo\nhalf")
    assert log.read().left_out == "4 lines"
    path.write_text("begun anew\n")
    assert log.read() == LogTailReader(path).read()


def test_of_a_huge_log_a_bounded_part_is_read_and_what_is_not_yet_counted_is_told_in_bytes(tmp_path):
    path = tmp_path / "stdout"
    with path.open("wb") as file:
        os.truncate(file.fileno(), 3_000_000_000)
        file.seek(0, os.SEEK_END)
        file.write(b"\nthe end\n")
    text, left_out = tail(path)
    assert (text.splitlines()[-1], left_out) == ("the end", "3 GB")


def test_lines_too_long_to_send_leave_room_and_are_counted(tmp_path):
    path = tmp_path / "stdout"
    path.write_text("".join(f"{i:05} {'x' * 3_000}\n" for i in range(100)))
    text, left_out = tail(path)
    assert len(text) <= 32_768
    lines = text.splitlines()
    assert (lines[-1][:5], left_out) == ("00099", f"{100 - len(lines)} lines")


@pytest.mark.parametrize(
    ("printed", "seen"),
    [
        (" 10%\r 50%\r100%", "100%"),
        ("12345\rab", "ab345"),
        ("done\r", "done"),
        ("abc\b\bX", "aXc"),
        ("\b\bstart", "start"),
        ("loading...\r\x1b[Kready", "ready"),
        ("\x1b]0;title\x07text \x1b[?25l\x1b[2Aand more\x07", "text and more"),
        ("tab\tstays", "tab\tstays"),
        ("\x1b[31mred\x1b[0m plain", "\x1b[0;31mred\x1b[0m plain"),
        ("\x1b[1;38;5;120mbold\x1b[22m green", "\x1b[0;1;38;5;120mbold\x1b[0;38;5;120m green\x1b[0m"),
        ("\x1b[38;2;1;2;999mno colour", "no colour"),
        ("\x1b[38;5mno colour", "no colour"),
    ],
)
def test_a_line_is_what_a_terminal_shows(printed, seen):
    assert list(rendered([printed])) == [seen]


def test_a_colour_goes_on_in_the_next_line():
    assert list(rendered(["\x1b[32mgreen", "still", "\x1b[mplain"])) == [
        "\x1b[0;32mgreen\x1b[0m",
        "\x1b[0;32mstill\x1b[0m",
        "plain",
    ]


def test_a_line_without_end_is_cut_and_says_so():
    [line] = rendered(["x" * (MOST_CHARACTERS + 7)])
    assert line == "x" * MOST_CHARACTERS + " ... 7 characters left out"


def test_a_progress_bar_of_a_megabyte_is_shown_as_it_stands_now():
    bar = "".join(f"\r{i:6} [\x1b[32m{'#' * 40}\x1b[0m]" for i in range(16_000))
    begun_s = time.thread_time()
    [line] = rendered([bar])
    assert line.startswith(" 15999 [")
    assert time.thread_time() - begun_s < 10

import itertools

import pytest

from jupyter_autotrain.agent.terminal import printable
from jupyter_autotrain.errors import AutotrainError

STEERING = (
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x1b]52;c;aGk=\x1b\\",
    "\x1bPq#0\x1b\\",
    "\x1bc",
    "\x1b(0",
    "\x9b2J",
    "\x9d8;;http://x\x9c",
    "a\bb",
    "\x07",
    "\x1b",
    "\u202eevil\u2066",
)


def test_ordinary_text_stays_as_it_is():
    text = "loss 0.5\tacc ½ größer\n  indented [31m] (x)\n"
    assert printable(text) == text


@pytest.mark.parametrize("text", STEERING)
def test_no_control_character_but_newline_and_tab_is_left(text):
    for around in (text, f"a{text}b", text * 3):
        left = printable(around)
        assert not any(c < " " or "\x7f" <= c <= "\x9f" or c in "\u202e\u2066" for c in left if c not in "\n\t")


def test_sequences_go_whole():
    assert printable("\x1b[1;31mred\x1b[0m and \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\") == "red and link"


def test_pieces_of_a_sequence_cannot_join_to_one():
    for first, second in itertools.product(STEERING, STEERING):
        assert "\x1b" not in printable(first[:2]) + printable(second[1:])


def test_a_line_written_anew_is_what_it_was_last():
    assert printable("10%\r20%\r30%\r\ndone\r\n") == "30%\ndone\n"


def test_errors_cannot_steer_a_terminal():
    error = AutotrainError("found \x1b]0;x\x07here", "line one\nline two", "\x9b2Jdo")
    assert str(error) == "found here\nline one\nline two\ndo"
    assert (error.found, error.action) == ("found here", "do")


def test_half_a_character_is_replaced_by_one_that_can_be_printed():
    assert printable("a\ud800b \udcff") == "a\ufffdb \ufffd"
    assert str(AutotrainError("a\ud800", "b\udcff")).encode() == "a\ufffd\nb\ufffd".encode()

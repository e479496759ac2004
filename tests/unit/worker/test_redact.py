from __future__ import annotations

import base64
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_autotrain.worker.redact import Redactor

SECRET = "hunter2-hunter2"


def through(pieces: list[bytes], *secrets: str) -> bytes:
    redactor = Redactor(secrets)
    return b"".join(redactor.feed(piece) for piece in pieces) + redactor.finish()


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=6))
def test_a_secret_is_found_wherever_the_stream_is_cut(cuts: list[int]) -> None:
    data = f"a {SECRET} b {SECRET}".encode()
    places = [0, *sorted(cuts), len(data)]
    pieces = [data[a:b] for a, b in pairwise(places)]
    assert through(pieces, SECRET) == b"a *** b ***"


def test_base64_of_a_secret_is_masked_too() -> None:
    assert through([base64.b64encode(SECRET.encode())], SECRET) == b"***"


def test_each_line_of_a_secret_of_several_lines_is_masked() -> None:
    assert through([b"KEY\nabcdef\n"], "abcdef\nghijkl") == b"KEY\n***\n"


def test_values_of_three_letters_are_left_since_they_are_everywhere() -> None:
    assert through([b"the end"], "the") == b"the end"


@settings(derandomize=True, max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=30), max_size=5))
def test_a_stream_without_secrets_is_unchanged(pieces: list[bytes]) -> None:
    assert through(pieces, "not-in-there-at-all") == b"".join(pieces)


def test_what_is_held_back_is_only_the_beginning_of_a_secret() -> None:
    redactor = Redactor([SECRET])
    assert redactor.feed(b"a line\n") == b"a line\n"
    assert redactor.feed(b"hunt") == b""
    assert redactor.feed(b"er\n") == b"hunter\n"

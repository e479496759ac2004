from __future__ import annotations

import base64
import json
import urllib.parse
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_autotrain.agent.trial.redact import Redactor

SECRET = "hunter2-hunter2"


def through(pieces: list[bytes], *secrets: str) -> bytes:
    redactor = Redactor(secrets)
    return b"".join(redactor.feed(piece) for piece in pieces) + redactor.finish()


@settings(max_examples=100)
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


@settings(max_examples=50)
@given(st.lists(st.binary(max_size=30), max_size=5))
def test_a_stream_without_secrets_is_unchanged(pieces: list[bytes]) -> None:
    assert through(pieces, "not-in-there-at-all") == b"".join(pieces)


def test_what_is_held_back_is_only_the_beginning_of_a_secret() -> None:
    redactor = Redactor([SECRET])
    assert redactor.feed(b"a line\n") == b"a line\n"
    assert redactor.feed(b"hunt") == b""
    assert redactor.feed(b"er\n") == b"hunter\n"


FORMS = {
    "hex": lambda raw: raw.hex(),
    "HEX": lambda raw: raw.hex().upper(),
    "url": lambda raw: urllib.parse.quote(raw, safe=""),
    "url with slashes": urllib.parse.quote,
    "form": urllib.parse.quote_plus,
    "base64": lambda raw: base64.b64encode(raw).decode(),
    "base64 for URLs": lambda raw: base64.urlsafe_b64encode(raw).decode(),
    "json": lambda raw: json.dumps(raw.decode()),
    "repr": lambda raw: repr(raw.decode()),
}
VALUES = (SECRET, "a/b+c?d=e&f g/h", "p@ss:wörd\"quo'te", "\xff\xfe\xfb\xbf\xff\xff" * 3, "hf_" + "aB3" * 12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", VALUES)
def test_the_encodings_of_a_secret_are_masked_wherever_the_stream_is_cut(form: str, value: str) -> None:
    text = FORMS[form](value.encode()).encode()
    for cut in range(len(text)):
        masked = through([b"<", text[:cut], text[cut:], b">"], value).strip(b"<>").replace(b"***", b"")
        assert len(masked) <= 4, masked


@settings(max_examples=100)
@given(before=st.binary(max_size=9), after=st.binary(max_size=9), value=st.sampled_from(VALUES), safe=st.booleans())
def test_a_secret_inside_a_longer_base64_text_is_masked_at_every_place(
    before: bytes, after: bytes, value: str, safe: bool
) -> None:
    encode = base64.urlsafe_b64encode if safe else base64.b64encode
    plain = len(encode(before + after))
    masked = through([encode(before + value.encode() + after)], value)
    assert b"***" in masked
    assert len(masked.replace(b"***", b"")) <= plain + 8  # what a group shares with its neighbours


def test_texts_with_half_a_surrogate_pair_are_masked_and_do_not_fail() -> None:
    assert Redactor([SECRET]).text(f"\ud800{SECRET}").endswith("***")


def test_names_of_files_are_masked_and_links_not_followed(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    outside = tmp_path / "outside"
    for folder in (inside, outside, inside / f"run-{SECRET}"):
        folder.mkdir()
    for name in (f"a-{SECRET}.txt", f"b-{SECRET.encode().hex()}", "plain", "a-***.txt", f"run-{SECRET}/{SECRET}"):
        (inside / name).write_text(name[:1])
    (outside / SECRET).touch()
    (inside / "link").symlink_to(outside)
    Redactor([SECRET]).rename_below(str(inside))
    found = {str(path.relative_to(inside)) for path in inside.rglob("*")}
    assert found == {"a-***.txt", "a-***.txt-2", "b-***", "plain", "run-***", "run-***/***", "link"}
    assert (outside / SECRET).exists()


def test_long_secrets_do_not_slow_a_stream_of_short_lines() -> None:
    """A key of a few kB, piece by piece: the work is counted in pieces that are held back, not in time."""
    key = "\n".join("abcdefghij" * 6 for _ in range(50))
    redactor = Redactor([key])
    assert b"".join(redactor.feed(b"step 1 loss 0.5\n") for _ in range(2000)) == b"step 1 loss 0.5\n" * 2000

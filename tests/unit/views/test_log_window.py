"""Parts of a log by byte offsets: whole characters, whole lines at the end, bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_autotrain.views.log_window import log_json

TEXTS = st.text(alphabet="ab\n±€😀", max_size=60)


def read_all(directory, most_bytes):
    begin = 0
    texts = []
    while True:
        part = log_json(directory, "stdout", begin, most_bytes)
        assert part["begin_bytes"] == begin
        texts.append(part["text"])
        if part["end_bytes"] == part["size_bytes"]:
            return "".join(texts)
        assert part["end_bytes"] > begin
        begin = part["end_bytes"]


@given(text=TEXTS, most_bytes=st.integers(4, 20))
def test_the_parts_of_a_log_are_the_log(tmp_path_factory, text, most_bytes):
    folder = tmp_path_factory.mktemp("log")
    (folder / "stdout").write_bytes(text.encode())
    assert read_all(folder, most_bytes) == text


def test_bytes_that_are_no_text_do_not_stop_a_follower(tmp_path):
    (tmp_path / "stdout").write_bytes(b"\xff\xfe\x80\x80\x80\x80 ok \xf0\x9f")
    assert " ok " in read_all(tmp_path, 5)


def test_the_end_begins_with_a_line(tmp_path):
    (tmp_path / "stdout").write_text("first line\nsecond line\nthird\n")
    part = log_json(tmp_path, "stdout", None, 10)
    assert part["text"] == "third\n"
    assert part["end_bytes"] == part["size_bytes"] == 29


def test_a_line_longer_than_the_part_is_cut(tmp_path):
    (tmp_path / "stdout").write_text("x" * 100)
    assert log_json(tmp_path, "stdout", None, 10)["text"] == "x" * 10


def test_no_file_is_an_empty_log_and_a_begin_beyond_the_end_is_the_end(tmp_path):
    assert log_json(tmp_path, "stdout", 5, 10)["size_bytes"] == 0
    (tmp_path / "stdout").write_text("abc")
    assert log_json(tmp_path, "stdout", 500, 10) == {"text": "", "begin_bytes": 3, "end_bytes": 3, "size_bytes": 3}


def test_a_link_is_refused(tmp_path):
    (tmp_path / "stdout").symlink_to("/etc/passwd")
    with pytest.raises(OSError, match="link"):
        log_json(tmp_path, "stdout", 0, 10)

"""Reading what a trial may have put into its directory."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from jupyter_autotrain.agent import files


def hostile(path: Path, kind: str) -> Path:
    """Put something there that is no regular file."""
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))
    return path


SAID = {"fifo": "a named pipe", "link": "a link", "folder": "a folder", "socket": "a socket"}


@pytest.mark.parametrize("kind", SAID)
def test_what_is_no_regular_file_is_refused_at_once_and_named(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    hostile(Path("metrics"), kind)
    with pytest.raises(files.NotRegularError, match=SAID[kind]) as caught:
        files.read(tmp_path, "metrics", 100)
    assert not files.is_absent(caught.value)


def test_a_link_in_the_middle_of_a_path_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("k")
    (tmp_path / "trial").mkdir()
    (tmp_path / "trial" / "outputs").symlink_to(tmp_path / "secret")
    with pytest.raises(files.NotRegularError, match="outputs, which is a link"):
        files.read(tmp_path / "trial", "outputs/key", 100)


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "", "a//b"])
def test_a_path_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(files.NotRegularError, match="no path inside"):
        files.read(tmp_path, name, 100)


def test_absent_is_told_from_unreadable(tmp_path: Path) -> None:
    for name in ("nothing", "no/such/folder"):
        with pytest.raises(OSError, match="No such file") as caught:
            files.read(tmp_path, name, 100)
        assert files.is_absent(caught.value)
    for number in (errno.EMFILE, errno.EACCES, errno.EIO):
        assert not files.is_absent(OSError(number, "x"))


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_text("text")
    (tmp_path / "link").symlink_to("a")
    assert files.read(tmp_path, "a/b", 2, 1) == b"ex"
    for name in ("a", "link/b", "a/none", "a/b/c"):
        with pytest.raises(OSError, match=r"regular file|No such file"):
            files.read(tmp_path, name, 1)
    opened = {os.path.realpath(entry) for entry in Path("/proc/self/fd").iterdir()}
    assert [path for path in opened if path.startswith(str(tmp_path))] == []


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "", "\0", "{", "9" * 5000, '"\udcff"'])
def test_hostile_json_is_a_value_error_and_nothing_else(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=r"."):
        files.read_json(tmp_path, "x.json")


def test_json_that_never_ends_is_not_read_whole(tmp_path: Path) -> None:
    with (tmp_path / "x.json").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ValueError, match="longer than"):
        files.read_json(tmp_path, "x.json")


def test_a_tree_is_copied_without_what_is_no_regular_file(tmp_path: Path) -> None:
    source = tmp_path / "trial" / "outputs"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "a.txt").write_text("a")
    hostile(source / "pipe", "fifo")
    hostile(source / "zero", "link")
    (source / "loop").symlink_to(source)
    left_out = files.copy_tree(tmp_path / "trial", "outputs", str(tmp_path / "copy"))
    assert sorted(left_out) == ["loop: a link", "pipe: a named pipe", "zero: a link"]
    assert [str(path.relative_to(tmp_path / "copy")) for path in (tmp_path / "copy").rglob("*")] == [
        "deep",
        "deep/a.txt",
    ]
    assert (tmp_path / "copy" / "deep" / "a.txt").stat().st_mode & 0o777 == 0o600

"""Reading what `data:` names: each content once, and no change unseen."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from jupyter_autotrain.client import data_files
from jupyter_autotrain.client.waiting import Progress
from jupyter_autotrain.core.data import DataKind, DataManifest, DataSource
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import DataError


class Counting(Progress):
    """Counts the bytes that were read."""

    def __init__(self) -> None:
        super().__init__(print, print)
        self.read_bytes = 0

    def read_data(self, size_bytes: int, total_bytes: int) -> None:
        assert size_bytes <= total_bytes
        self.read_bytes = size_bytes


def read(folder: Path, path: str, progress: Progress | None = None) -> tuple[DataSource, DataManifest]:
    source = DataSource("train", DataKind.COPY, local_path=path)
    spec, manifests = data_files.read(
        Home(folder / "home"), ExperimentSpec("e", Bundle(), data=(source,)), folder, progress
    )
    return spec.data[0], manifests["train"]


def settled(path: Path, content: bytes) -> None:
    """Write a file that was last changed a minute ago."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    a_minute_ago_s = time.time() - 60
    os.utime(path, (a_minute_ago_s, a_minute_ago_s))


def test_a_file_gives_its_name_size_digest_and_place_beside_the_notebook(tmp_path: Path) -> None:
    settled(tmp_path / "data" / "big.bin", b"x" * 10)
    source, manifest = read(tmp_path, "./data/big.bin")
    assert (source.file_name, source.size_bytes, source.work_path) == ("big.bin", 10, "data/big.bin")
    assert source.local_path == str(tmp_path / "data" / "big.bin")
    assert source.sha256 == manifest.sha256
    assert manifest.changed_file() == ""


def test_a_big_file_that_did_not_change_is_read_once(tmp_path: Path) -> None:
    settled(tmp_path / "big.bin", b"x" * 2_000_000)
    first = Counting()
    second = Counting()
    before, _ = read(tmp_path, "big.bin", first)
    after, _ = read(tmp_path, "big.bin", second)
    assert (first.read_bytes, second.read_bytes) == (2_000_000, 0)
    assert before == after
    (kept,) = (tmp_path / "home" / "digests").iterdir()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (kept, kept.parent, tmp_path / "home")] == [
        0o600,
        0o700,
        0o700,
    ]


def test_of_a_folder_only_the_changed_file_is_read_again(tmp_path: Path) -> None:
    for name in ("a", "b"):
        settled(tmp_path / "folder" / name, b"x" * 2_000_000)
    before, _ = read(tmp_path, "folder")
    settled(tmp_path / "folder" / "b", b"y" * 1_500_000)
    counted = Counting()
    after, _ = read(tmp_path, "folder", counted)
    assert counted.read_bytes == 1_500_000
    assert before.sha256 != after.sha256


def test_a_file_that_was_just_written_is_not_trusted_by_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_files, "_SETTLED_NS", 3600 * 10**9)
    path = tmp_path / "big.bin"
    path.write_bytes(b"x" * 2_000_000)
    before, _ = read(tmp_path, "big.bin")
    status = path.stat()
    path.write_bytes(b"y" * 2_000_000)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    after, _ = read(tmp_path, "big.bin")
    assert before.sha256 != after.sha256


def test_damaged_notes_of_digests_are_made_again(tmp_path: Path) -> None:
    settled(tmp_path / "big.bin", b"x" * 2_000_000)
    before, _ = read(tmp_path, "big.bin")
    for path in (tmp_path / "home" / "digests").iterdir():
        path.write_text("[1")
    after, _ = read(tmp_path, "big.bin")
    assert before == after


def test_a_change_a_removal_and_a_new_time_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "big.bin"
    settled(path, b"x" * 10)
    _, manifest = read(tmp_path, "big.bin")
    path.touch()
    assert manifest.changed_file() == ""
    path.write_bytes(b"z" * 10)
    assert manifest.changed_file() == str(path)
    path.unlink()
    assert manifest.changed_file() == str(path)


def test_a_link_counts_as_the_file_or_folder_that_it_leads_to(tmp_path: Path) -> None:
    settled(tmp_path / "disk" / "a.bin", b"a")
    settled(tmp_path / "data" / "own.bin", b"b")
    (tmp_path / "data" / "file").symlink_to(tmp_path / "disk" / "a.bin")
    (tmp_path / "data" / "folder").symlink_to("../disk")
    _, manifest = read(tmp_path, "data")
    assert [file.path for file in manifest.files] == ["data/file", "data/own.bin", "data/folder/a.bin"]
    assert manifest.folders == ("data", "data/folder")


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (
            "/gone/b.png",
            r"train: .*/data/b\.png cannot be read: it is a link to /gone/b\.png, which is not there\.",
        ),
        ("..", r"it is a link to /.*, in which it lies itself\."),
        ("b.png", r"it is a link to b\.png, which is not there\."),
        ("/dev/null", r"it is neither a file nor a folder\."),
    ],
)
def test_what_is_no_file_is_told_and_never_left_out(tmp_path: Path, target: str, told: str) -> None:
    settled(tmp_path / "data" / "a.png", b"a")
    (tmp_path / "data" / "b.png").symlink_to(target)
    with pytest.raises(DataError, match=told):
        read(tmp_path, "data")


def test_what_cannot_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data\.train: .*nothing\.bin cannot be read: No such file"):
        read(tmp_path, "nothing.bin")

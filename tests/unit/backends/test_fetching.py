"""Files that are brought here from a place that may say anything of them."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import pytest

from jupyter_autotrain.backends import directories
from jupyter_autotrain.backends.kubernetes.following import pod_directory
from jupyter_autotrain.errors import BackendError


class Place:
    """Files by their paths in a folder, whatever these are."""

    def __init__(self, files: Mapping[str, bytes | None]) -> None:
        self.files = files

    def listing(self, path: str) -> Mapping[str, int] | int:
        assert path == "outputs"
        return {name: -1 if data is None else len(data) for name, data in self.files.items()}

    def put(self, path: str, data: bytes) -> None:
        raise NotImplementedError

    def receive(self, path: str, size_bytes: int, part: IO[bytes]) -> None:
        data = self.files[path.removeprefix("outputs/")] or b""
        directories.write_pieces(part, size_bytes, lambda offset: data[offset : offset + 2])


def test_a_folder_arrives_with_its_folders_and_private(tmp_path: Path) -> None:
    place = Place({"empty": None, "deep/model.bin": b"abcde", "log": b""})
    directories.fetch(place, "outputs", tmp_path / "there" / "outputs")
    there = tmp_path / "there" / "outputs"
    assert (there / "deep" / "model.bin").read_bytes() == b"abcde"
    assert (there / "empty").is_dir()
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in (tmp_path / "there").rglob("*")} == {0}
    assert directories.sizes(place, "outputs") == {"deep/model.bin": 5, "log": 0}


def test_a_copy_is_written_anew_where_an_earlier_one_was_cut(tmp_path: Path) -> None:
    (tmp_path / "log.part").write_bytes(b"of another time, and longer")
    directories.fetch(Place({"log": b"new"}), "outputs", tmp_path)
    assert (tmp_path / "log").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


@pytest.mark.parametrize("name", ["../other", "deep/../../other", "/etc/other", "."])
@pytest.mark.parametrize("size", [3, -1])
def test_no_place_writes_outside_of_the_folder(tmp_path: Path, name: str, size: int) -> None:
    place = Place({name: b"bad" if size > 0 else None})
    with pytest.raises(BackendError, match="outside of the folder"):
        directories.fetch(place, "outputs", tmp_path / "outputs")
    assert list((tmp_path / "outputs").iterdir()) == []
    assert not (tmp_path / "other").exists()


def test_a_pod_writes_no_more_outside_than_a_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"outputs/../../other": 3}
    node = SimpleNamespace()
    collected = SimpleNamespace(directory=tmp_path / "none", nodes=[node])
    job = SimpleNamespace(ref=SimpleNamespace(job_id="e1-1-1"), collected=collected, final=None)
    view = SimpleNamespace(running_pods=lambda _job: ["pod"], address=lambda _job, _pod: object())
    tracker = SimpleNamespace(
        api=SimpleNamespace(loop=SimpleNamespace(call=lambda found: found)),
        view=view,
        follower_of=lambda _job, _pod: SimpleNamespace(node=node),
    )
    monkeypatch.setattr(pod_directory.exec_command, "sizes", lambda _api, _at: names)
    monkeypatch.setattr(pod_directory.exec_command, "read", lambda *_: b"bad")
    there = pod_directory.PodDirectory(tracker, job)  # type: ignore[arg-type]  # all that is used of them
    with pytest.raises(BackendError, match="outside of the folder"):
        directories.fetch(there, "outputs", tmp_path / "a" / "outputs")
    assert not list(tmp_path.rglob("other"))

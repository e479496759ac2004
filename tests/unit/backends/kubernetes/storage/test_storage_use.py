"""Tests of what experiments of homes have in a storage: whose it is, and what goes with them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from jupyter_autotrain.agent.objects.remote_files import Credentials, RemoteFiles
from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.backends.kubernetes.storage.remote_storage import RemoteStorage
from jupyter_autotrain.backends.kubernetes.storage.volume_storage import MountedStorage
from jupyter_autotrain.backends.transfer.folders import FolderManifest, TarStream, scan_folder
from jupyter_autotrain.core.home import Home, home_identity
from jupyter_autotrain.errors import BackendError
from tests.labs.file_server import FileServer, serving

KEYS = {"AWS_ACCESS_KEY_ID": "team", "AWS_SECRET_ACCESS_KEY": "quiet"}


@pytest.fixture
def folders(tmp_path: Path) -> list[FolderManifest]:
    """Two archives."""
    found = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "file").write_text(name)
        found.append(scan_folder(folder))
    return found


def test_a_mounted_volume_loses_what_experiments_have_that_are_no_more(
    tmp_path: Path, folders: list[FolderManifest]
) -> None:
    (tmp_path / "mount").mkdir()
    storage = MountedStorage(str(tmp_path / "mount"))
    one, two = folders
    for folder, user in ((one, "a/x"), (two, "a/x"), (one, "a/y"), (one, "b/x")):
        storage.send(folder, user)
    (tmp_path / "mount" / "experiments" / "a" / "x" / "1-1" / "checkpoints").mkdir(parents=True)
    (tmp_path / "mount" / "experiments" / "a" / "x" / "1-1" / "checkpoints" / "step-1").write_bytes(bytes(100))
    assert storage.experiments("a") == {"x": 100, "y": 0}
    storage.remove("a", ["x", "never-was"])
    assert (storage.experiments("a"), storage.experiments("b")) == ({"y": 0}, {"x": 0})
    archives = tmp_path / "mount" / "data" / "archives"
    assert [path.name for path in archives.iterdir() if path.is_dir()] == [one.digest]
    storage.remove("a", ["y"])
    assert (archives / one.digest).is_dir()  # the other home uses it
    storage.remove("b", ["x"])
    assert not (archives / one.digest).exists()
    assert storage.experiments("nobody") == {}


def test_a_mount_that_takes_nothing_is_a_refusal_of_this_place_alone(
    tmp_path: Path, folders: list[FolderManifest]
) -> None:
    (tmp_path / "mount").mkdir()
    (tmp_path / "mount" / "data").touch()
    with pytest.raises(BackendError, match="cannot take the files"):
        MountedStorage(str(tmp_path / "mount")).send(folders[0], "a/x")


def test_a_bucket_loses_what_experiments_have_that_are_no_more(folders: list[FolderManifest]) -> None:
    with serving(FileServer(Credentials.from_variables(KEYS))) as server:
        place = {"s3": {"bucket": "team", "prefix": "at & us/", "endpoint": server.url}}
        storage = RemoteStorage(place, lambda: KEYS)
        one, two = folders
        for folder, user in ((one, "a/x"), (two, "a/x"), (one, "b/x")):
            storage.send(folder, user)
        assert storage.experiments("a") == {"x": 0}
        storage.remove("a", ["x"])
        assert (storage.experiments("a"), storage.experiments("b")) == ({}, {"x": 0})
        files = RemoteFiles(place, KEYS)
        first = TarStream(one)
        second = TarStream(two)
        assert files.has(f"archives/{first.sha256}.tar", first.size_bytes)
        assert not files.has(f"archives/{second.sha256}.tar", second.size_bytes)


def test_a_bucket_is_listed_page_by_page() -> None:
    with serving(FileServer(Credentials.from_variables(KEYS))) as server:
        files = RemoteFiles({"s3": {"bucket": "team", "endpoint": server.url}}, KEYS)
        names = [f"notes/{number}" for number in range(7)]
        for name in (*names, "others/1"):
            files.put(name, list, 0, hashlib.sha256(b"").hexdigest())
        assert files.names("notes/") == names
        files.delete("notes/3")
        files.delete("notes/3")
        assert len(files.names("notes/")) == 6


def test_a_web_server_lists_nothing_so_nothing_is_known_of_a_home(folders: list[FolderManifest]) -> None:
    with serving(FileServer()) as server:
        storage = RemoteStorage({"http": {"url": server.url}}, dict)
        storage.send(folders[0], "a/x")
        assert storage.experiments("a") == {}
        storage.remove("a", ["x"])


def test_homes_of_one_path_are_told_apart(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    first = home_identity(home)
    assert home_identity(home) == first
    assert len(first) == 12
    home.root.rename(tmp_path / "moved")
    assert home_identity(Home(tmp_path / "moved")) == first
    assert home_identity(home) != first
    assert [path.name for path in home.root.iterdir()] == ["identity"]


def test_the_layout_names_what_is_of_an_attempt() -> None:
    attempt = places.attempt("ab12", "digits", 3, 1)
    assert places.checkpoints(attempt) == "/autotrain/storage/experiments/ab12/digits/3-1/checkpoints"
    assert places.trial_directory(attempt, 0) == "/autotrain/storage/experiments/ab12/digits/3-1/node-0"

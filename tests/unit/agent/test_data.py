"""Data on the trial's side: fetched once, verified, resumed, within a limit, never taken from a running trial."""

from __future__ import annotations

import fcntl
import hashlib
import http.server
import os
import re
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.objects import download
from jupyter_autotrain.agent.objects.data_cache import DataCache
from jupyter_autotrain.agent.objects.remote_files import RemoteFiles
from jupyter_autotrain.agent.ranks import data
from jupyter_autotrain.agent.ranks.data import DataPaths
from jupyter_autotrain.errors import DataError

CONTENT = os.urandom(3_000_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    """Serves one file; of the first `cuts` answers only the first half of what is asked comes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.ranges: list[str] = []
        self.cuts = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/models/weights.bin"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        asked = self.headers.get("Range", "")
        self.server.ranges.append(asked)
        if not self.path.endswith("weights.bin"):
            self.send_error(404)
            return
        start = int(re.findall(r"\d+", asked)[0]) if asked else 0
        body = CONTENT[start:]
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.cuts:
            self.server.cuts -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    served = Server()
    thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield served
    served.shutdown()
    thread.join()
    served.server_close()


@pytest.fixture
def cache(tmp_path: Path) -> DataCache:
    return DataCache(str(tmp_path / "cache"), 10_000_000)


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_PAUSE_S", 0.0)


def fetch(cache: DataCache, url: str, sha256: str = SHA256, job: str = "/jobs/1") -> Path:
    return Path(download.fetch(cache, url, sha256, "weights.bin", job))


def test_trials_that_begin_together_share_one_download(cache: DataCache, server: Server) -> None:
    with ThreadPoolExecutor(4) as pool:
        paths = set(pool.map(lambda number: fetch(cache, server.url, job=f"/jobs/{number}"), range(4)))
    assert len(server.ranges) == 1
    (path,) = paths
    assert path.read_bytes() == CONTENT
    assert path.name == "weights.bin"
    modes = [stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent, Path(cache.root, "folders"))]
    assert modes == [0o400, 0o700, 0o700]


def test_a_download_that_was_cut_goes_on_where_it_ended(cache: DataCache, server: Server) -> None:
    server.cuts = 2
    assert fetch(cache, server.url).read_bytes() == CONTENT
    assert server.ranges == ["", "bytes=1500000-", "bytes=2250000-"]


def test_a_part_that_a_killed_trial_left_is_gone_on_with(cache: DataCache, server: Server) -> None:
    Path(cache.part(SHA256)).write_bytes(CONTENT[:1_000_000])
    assert fetch(cache, server.url).read_bytes() == CONTENT
    assert server.ranges == ["bytes=1000000-"]


def test_an_archive_of_a_storage_is_gone_on_with_too(server: Server, tmp_path: Path) -> None:
    server.cuts = 2
    RemoteFiles({"http": server.url.rpartition("/")[0]}, {}).get("weights.bin", SHA256, str(tmp_path / "archive"))
    assert (tmp_path / "archive").read_bytes() == CONTENT
    assert server.ranges == ["", "bytes=1500000-", "bytes=2250000-"]
    assert [path.name for path in tmp_path.iterdir()] == ["archive"]


def test_another_digest_is_an_error_that_names_both_and_nothing_is_kept(cache: DataCache, server: Server) -> None:
    with pytest.raises(DataError) as caught:
        fetch(cache, server.url, "0" * 64)
    assert SHA256 in caught.value.found
    assert "0" * 64 in caught.value.expected
    assert not Path(cache.part("0" * 64)).exists()
    assert not Path(cache.folder("0" * 64)).exists()


def test_a_url_that_is_wrong_is_told_at_once(cache: DataCache, server: Server) -> None:
    with pytest.raises(DataError, match="cannot be fetched"):
        fetch(cache, server.url.replace("weights", "others"))
    assert len(server.ranges) == 1


def test_a_server_that_nobody_answers_for_is_told(cache: DataCache, server: Server) -> None:
    server.cuts = 100
    with pytest.raises(DataError, match=r"cannot be fetched: the connection ended after"):
        fetch(cache, server.url)


def test_a_file_by_its_own_url_is_copied(cache: DataCache, tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(CONTENT)
    assert fetch(cache, (tmp_path / "weights.bin").as_uri()).read_bytes() == CONTENT


def test_the_same_file_by_another_name_is_there_by_that_name_too(cache: DataCache, server: Server) -> None:
    first = fetch(cache, server.url)
    second = Path(download.fetch(cache, server.url, SHA256, "renamed.bin", "/jobs/2"))
    assert second.name == "renamed.bin"
    assert second.samefile(first)
    assert fetch(cache, server.url, job="/jobs/3") == first
    assert len(server.ranges) == 1


def test_a_damaged_entry_is_fetched_again(cache: DataCache, server: Server) -> None:
    path = fetch(cache, server.url)
    path.chmod(0o600)
    path.write_bytes(b"damaged")
    Path(cache.root, "users", SHA256, "jobs~1").unlink()
    assert fetch(cache, server.url).read_bytes() == CONTENT
    assert len(server.ranges) == 2


def test_data_that_is_larger_than_the_limit_is_refused_before_it_comes(tmp_path: Path, server: Server) -> None:
    small = DataCache(str(tmp_path / "cache"), 1_000_000)
    with pytest.raises(DataError, match="The data is 3 MB") as caught:
        fetch(small, server.url)
    assert "data_cache_limit" in caught.value.action


def entry(cache: DataCache, digest: str, used_s: float, size_bytes: int = 4_000_000) -> Path:
    """Return an entry that was used at a time and by no trial."""
    folder = Path(cache.folder(digest))
    folder.mkdir(mode=0o700)
    (folder / "file").write_bytes(b"x" * size_bytes)
    cache.complete(digest)
    os.utime(f"{folder}.json", (used_s, used_s))
    return folder


def test_the_entry_that_was_used_least_recently_goes_first(cache: DataCache) -> None:
    old = entry(cache, "b", 200)
    older = entry(cache, "a", 100)
    new = entry(cache, "c", 300, 1_000_000)
    cache.make_room(4_000_000)
    assert [folder.exists() for folder in (older, old, new)] == [False, True, True]


def test_what_a_running_trial_uses_stays_and_the_room_is_refused(cache: DataCache, tmp_path: Path) -> None:
    used = entry(cache, "a", 100)
    free = entry(cache, "b", 200)
    job = tmp_path / "job"
    job.mkdir()
    (job / wire.STATUS_FILE).write_text("{}")
    with (job / wire.LOCK_FILE).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert cache.use("a", str(job))
        os.utime(f"{used}.json", (100, 100))
        cache.make_room(4_000_000)
        assert (used.exists(), free.exists()) == (True, False)
        with pytest.raises(DataError, match="in use by trials that run"):
            cache.make_room(8_000_000)
    cache.make_room(8_000_000)
    assert not used.exists()


def test_what_a_trial_is_about_to_use_stays(cache: DataCache, tmp_path: Path) -> None:
    used = entry(cache, "a", 100)
    assert cache.use("a", str(tmp_path / "not-begun"))
    with pytest.raises(DataError):
        cache.make_room(8_000_000)
    assert used.exists()


def test_an_entry_that_is_just_being_removed_is_not_taken_into_use(
    cache: DataCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry(cache, "a", 100)
    answers: list[bool] = []
    other = DataCache(cache.root)
    user = threading.Thread(target=lambda: answers.append(other.use("a", str(tmp_path / "job"))))
    remove = cache._remove

    def remove_while_it_is_asked_for(digest: str) -> None:
        user.start()
        user.join(0.2)  # it would have its answer by then
        remove(digest)

    monkeypatch.setattr(cache, "_remove", remove_while_it_is_asked_for)
    cache.make_room(8_000_000)
    user.join()
    assert answers == [False]


def test_what_another_trial_is_just_putting_there_stays(cache: DataCache, tmp_path: Path) -> None:
    assert not cache.use("a", str(tmp_path / "sends"))
    folder = Path(cache.folder("a"))
    folder.mkdir()
    (folder / "file").write_bytes(b"sent")
    assert not cache.use("a", str(tmp_path / "on-another-machine"))
    cache.complete("a")
    assert (folder / "file").read_bytes() == b"sent"
    assert cache.use("a", str(tmp_path / "third"))


def test_an_empty_folder_can_be_used_by_several_trials(cache: DataCache, tmp_path: Path) -> None:
    Path(cache.folder("a")).mkdir()
    cache.complete("a")
    assert cache.use("a", str(tmp_path / "one"))
    assert cache.use("a", str(tmp_path / "two"))
    Path(cache.folder("b")).mkdir()
    cache.complete("b")
    Path(cache.folder("b")).rmdir()
    assert not cache.use("b", str(tmp_path / "one"))


def test_what_a_killed_removal_has_left_goes_with_the_next(cache: DataCache) -> None:
    left = Path(cache.root, "parts", "a.removed")
    left.mkdir()
    (left / "file").touch()
    cache.make_room(1)
    assert not left.exists()


def test_data_that_a_trial_wrote_to_while_another_uses_it_is_told(cache: DataCache, tmp_path: Path) -> None:
    folder = entry(cache, "a", 100)
    assert cache.use("a", str(tmp_path / "one"))
    (folder / "file").write_bytes(b"written")
    with pytest.raises(DataError, match="was written to"):
        cache.use("a", str(tmp_path / "two"))


def test_a_disk_with_too_little_room_is_told_with_what_it_has(
    cache: DataCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 1_000_000})
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    with pytest.raises(DataError, match="has 1 MB free"):
        cache.make_room(2_000_000)


def test_names_are_attributes_and_items_and_a_wrong_one_lists_the_right_ones(tmp_path: Path) -> None:
    paths = DataPaths(train=tmp_path / "a", test="b")
    assert paths.train == paths["train"] == tmp_path / "a"
    assert paths.test == Path.cwd() / "b"
    assert list(paths) == ["train", "test"]
    with pytest.raises(AttributeError, match="no 'valid'; it names: train, test"):
        _ = paths.valid
    with pytest.raises(KeyError, match="no 'valid'"):
        _ = paths["valid"]


def test_what_is_not_there_is_named_with_its_machine() -> None:
    with pytest.raises(DataError, match=r"data\.images: /no/such is not there on \S+\."):
        data.prepare({"data": [{"name": "images", "kind": "path", "path": "/no/such"}]})

"""Archives on their way to a pod: through a ConfigMap, a volume or a server, verified and unpacked once."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_autotrain.agent.objects import archives, download
from jupyter_autotrain.agent.objects.remote_files import Credentials, RemoteFiles, Request, object_url
from jupyter_autotrain.backends.kubernetes.storage.code_objects import LIMIT_BYTES, CodeFile, CodeObjects, volume
from jupyter_autotrain.backends.transfer.folders import TarStream, scan_folder
from jupyter_autotrain.errors import BackendError, DataError
from tests.labs.file_server import FileServer, serving

KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
}
LABELS = {"jupyter-autotrain/home": "0123456789ab"}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_PAUSE_S", 0.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "train"
    (found / "deep" / "er").mkdir(parents=True)
    (found / "empty").mkdir()
    (found / "a.txt").write_bytes(b"a" * 1000)
    (found / "deep" / "er" / "b.bin").write_bytes(bytes(range(256)) * 20)
    (found / "run.sh").write_text("#!/bin/sh\n")
    (found / "run.sh").chmod(0o700)
    return found


def sent(stream: TarStream) -> Callable[[], Iterator[bytes]]:
    return stream.blocks


def test_the_published_example_of_a_signature_is_met() -> None:
    credentials = Credentials.from_variables(KEYS)
    assert credentials is not None
    request = Request("GET", "https://examplebucket.s3.amazonaws.com/test.txt", "us-east-1", "20130524T000000Z")
    signed = request.signed(credentials, {"range": "bytes=0-9"})["authorization"]
    assert signed.endswith("Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")


def test_an_object_of_s3_is_named_with_the_bucket_in_its_path() -> None:
    assert object_url("", "team", "a b/c", "eu-west-1") == "https://s3.eu-west-1.amazonaws.com/team/a%20b/c"
    assert object_url("https://minio.lab/", "team", "x", "us-east-1") == "https://minio.lab/team/x"


def test_a_tar_stream_is_the_same_each_time_and_tar_reads_it(folder: Path) -> None:
    stream = TarStream(scan_folder(folder))
    whole = b"".join(stream.blocks())
    assert len(whole) == stream.size_bytes
    assert hashlib.sha256(whole).hexdigest() == stream.sha256 == TarStream(scan_folder(folder)).sha256
    with tarfile.open(fileobj=io.BytesIO(whole)) as archive:
        assert sorted(archive.getnames()) == ["a.txt", "deep", "deep/er", "deep/er/b.bin", "empty", "run.sh"]


def test_an_archive_is_unpacked_whole_with_its_folders_and_rights(folder: Path, tmp_path: Path) -> None:
    stream = TarStream(scan_folder(folder))
    file = tmp_path / "data.tar"
    file.write_bytes(b"".join(stream.blocks()))
    entry = {"name": "train", "sha256": stream.sha256, "path": str(file)}
    (place,) = archives.place([entry], str(tmp_path / "cache"), {}).values()
    assert (Path(place) / "deep/er/b.bin").read_bytes() == (folder / "deep/er/b.bin").read_bytes()
    assert (Path(place) / "run.sh").stat().st_mode & 0o777 == 0o700
    assert (Path(place) / "a.txt").stat().st_mode & 0o777 == 0o600
    assert (Path(place) / "empty").is_dir()
    file.unlink()  # the second time nothing is read
    assert archives.place([entry], str(tmp_path / "cache"), {}) == {"train": place}


def test_a_damaged_archive_is_never_used_and_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    stream = TarStream(scan_folder(folder))
    file = tmp_path / "data.tar"
    file.write_bytes(b"".join(stream.blocks()).replace(b"aaaa", b"aaab", 1))
    entry = {"name": "train", "sha256": stream.sha256, "path": str(file)}
    with pytest.raises(DataError, match="was sent"):
        archives.place([entry], str(tmp_path / "cache"), {})
    assert [path.name for path in (tmp_path / "cache" / "archives").iterdir()] == [f"{stream.sha256}.lock"]


@pytest.mark.parametrize("name", ["../out", "/etc/passwd", "a/../../out"])
def test_an_archive_that_leads_out_of_its_folder_is_refused(name: str, tmp_path: Path) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    data = made.getvalue()
    with pytest.raises(DataError, match="outside"):
        archives.unpack(io.BytesIO(data), hashlib.sha256(data).hexdigest(), str(tmp_path / "to"))
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_an_archive_is_refused(tmp_path: Path) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        link = tarfile.TarInfo("link")
        link.type = tarfile.SYMTYPE
        link.linkname = "/etc/passwd"
        archive.addfile(link)
    with pytest.raises(DataError, match="something else than files"):
        archives.unpack(io.BytesIO(made.getvalue()), "", str(tmp_path / "to"))


@pytest.mark.parametrize("kind", ["s3", "http"])
def test_what_was_sent_to_a_server_is_fetched_verified_and_unpacked(kind: str, folder: Path, tmp_path: Path) -> None:
    server = FileServer(Credentials.from_variables(KEYS)) if kind == "s3" else FileServer(authorization="Bearer x")
    with serving(server):
        s3 = {"s3": {"bucket": "team", "prefix": "at/", "endpoint": server.url, "region": "eu-central-1"}}
        remote = s3 if kind == "s3" else {"http": {"url": f"{server.url}/team/"}}
        variables = KEYS if kind == "s3" else {"AUTHORIZATION": "Bearer x"}
        stream = TarStream(scan_folder(folder))
        files = RemoteFiles(remote, variables)
        assert not files.has("data/x.tar", stream.size_bytes)
        server.faults.append(503)
        files.put("data/x.tar", sent(stream), stream.size_bytes, stream.sha256)
        assert files.has("data/x.tar", stream.size_bytes)
        assert not files.has("data/x.tar", stream.size_bytes + 1)
        entry = {"name": "train", "sha256": stream.sha256, "remote": remote, "file": "data/x.tar"}
        server.faults.append(500)
        (place,) = archives.place([entry], str(tmp_path / "cache"), variables).values()
        assert (Path(place) / "a.txt").read_bytes() == b"a" * 1000
        assert [path.name for path in Path(place).parent.glob("*.tar")] == []
        path = "/team/at/data/x.tar" if kind == "s3" else "/team/data/x.tar"
        assert list(server.files) == [path]


def test_wrong_keys_are_told_with_what_to_correct_and_are_not_tried_again() -> None:
    with serving(FileServer(Credentials("other", "keys"))) as server:
        files = RemoteFiles({"s3": {"bucket": "team", "endpoint": server.url}}, KEYS)
        with pytest.raises(DataError) as caught:
            files.put("x", lambda: [b"x"], 1, hashlib.sha256(b"x").hexdigest())
        assert "403" in caught.value.found
        assert "Secret" in caught.value.action
        assert KEYS["AWS_SECRET_ACCESS_KEY"] not in str(caught.value)
        assert len(server.requests) == 1


def test_a_file_that_was_changed_on_the_server_is_not_used(tmp_path: Path) -> None:
    with serving(FileServer()) as server:
        server.files["/x"] = b"other"
        with pytest.raises(DataError, match="has the SHA-256"):
            RemoteFiles({"http": server.url}, {}).get("x", "0" * 64, str(tmp_path / "x"))
    assert list(tmp_path.iterdir()) == []


class Cluster:
    """ConfigMaps as a cluster keeps them; counts what it is asked."""

    def __init__(self) -> None:
        self.objects: dict[str, dict] = {}
        self.requests = 0
        self.is_down = False

    def create_unless_there(self, _type: object, _namespace: str, manifest: dict) -> None:
        self._count()
        self.objects.setdefault(manifest["metadata"]["name"], manifest)

    def patch_if_there(self, _type: object, _namespace: str, name: str, patch: dict) -> bool:
        self._count()
        if name not in self.objects:
            return False
        owners = self.objects[name]["metadata"].setdefault("ownerReferences", [])
        owners.extend(one for one in patch["metadata"]["ownerReferences"] if one not in owners)
        return True

    def _count(self) -> None:
        if self.is_down:
            raise BackendError("down")
        self.requests += 1


def job(number: int) -> dict:
    metadata = {"name": f"job-{number}", "uid": f"uid-{number}"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}


def code_objects(cluster: Cluster) -> CodeObjects:
    return CodeObjects(cluster, "lab", "0123456789ab", {"labels": LABELS})


def test_a_config_map_is_immutable_named_by_content_and_labelled() -> None:
    file = CodeFile("bundle.tar.gz", b"\0code")
    made = file.manifest("0123456789ab", "lab", {"labels": LABELS})
    assert made["immutable"] is True
    assert base64.b64decode(made["binaryData"]["bundle.tar.gz"]) == b"\0code"
    assert made["metadata"]["labels"] == LABELS
    assert "ownerReferences" not in made["metadata"]
    assert file.object_name("0123456789ab") != CodeFile("bundle.tar.gz", b"\0cod").object_name("0123456789ab")
    assert file.object_name("0123456789ab") != file.object_name("ba9876543210")
    assert len(file.object_name("0123456789ab")) <= 63


def test_a_config_map_takes_a_mebibyte_and_no_byte_more() -> None:
    assert CodeFile("x", bytes(LIMIT_BYTES)).fits
    assert not CodeFile("x", bytes(LIMIT_BYTES + 1)).fits


def test_many_jobs_become_owners_by_one_request_and_code_is_made_once() -> None:
    cluster = Cluster()
    code = code_objects(cluster)
    for number in range(200):
        name = code.ensure(CodeFile("bundle.tar.gz", b"code"))
        code.own([name], job(number))
    code.flush()
    assert cluster.requests == 2
    assert len(cluster.objects[name]["metadata"]["ownerReferences"]) == 200
    assert not code.has_new_owners


def test_code_that_was_collected_with_its_last_owner_is_made_again_with_the_new_ones() -> None:
    cluster = Cluster()
    code = code_objects(cluster)
    name = code.ensure(CodeFile("bundle.tar.gz", b"code"))
    cluster.objects.clear()
    code.own([name], job(1))
    code.flush()
    assert [one["uid"] for one in cluster.objects[name]["metadata"]["ownerReferences"]] == ["uid-1"]


def test_owners_stay_noted_while_the_cluster_does_not_answer() -> None:
    cluster = Cluster()
    code = code_objects(cluster)
    name = code.ensure(CodeFile("bundle.tar.gz", b"code"))
    code.own([name], job(1))
    cluster.is_down = True
    with pytest.raises(BackendError):
        code.flush()
    code.own([name], job(2))
    cluster.is_down = False
    code.flush()
    assert [one["uid"] for one in cluster.objects[name]["metadata"]["ownerReferences"]] == ["uid-1", "uid-2"]


def test_trials_that_begin_together_make_their_code_once() -> None:
    cluster = Cluster()
    code = code_objects(cluster)
    threads = [threading.Thread(target=code.ensure, args=(CodeFile("x", b"code"),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cluster.requests == 1


def test_one_volume_shows_the_files_of_several_config_maps() -> None:
    made = volume("code", {"agent.zip": "a", "bundle.tar.gz": "b"})
    names = [source["configMap"]["name"] for source in made["projected"]["sources"]]
    assert names == ["a", "b"]

"""Which way an archive goes to its pods, and what the pod makes ready before the trial begins."""

from __future__ import annotations

import base64
import hashlib
import sys
from pathlib import Path

import pytest

from jupyter_autotrain.backends.kubernetes import shipping, tar_stream, volume_storage
from jupyter_autotrain.backends.kubernetes.checkpoint_volume import has_volume
from jupyter_autotrain.backends.kubernetes.code_objects import CodeObjects
from jupyter_autotrain.backends.kubernetes.shipping import RemoteStorage, Shipping
from jupyter_autotrain.backends.kubernetes.volume_storage import MountedStorage
from jupyter_autotrain.backends.kubernetes_pod import archives, layout, preparing
from jupyter_autotrain.core.json import to_json
from jupyter_autotrain.core.python_environment import PythonEnvironment, PythonPackage
from jupyter_autotrain.errors import BackendError, DataError
from jupyter_autotrain.testing.file_server import FileServer, serving


class Cluster:
    """ConfigMaps by name."""

    def __init__(self) -> None:
        self.objects: dict[str, dict] = {}

    def create_unless_there(self, _type: object, _namespace: str, manifest: dict) -> None:
        self.objects[manifest["metadata"]["name"]] = manifest

    def patch_if_there(self, *_: object) -> bool:
        return True


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def code(cluster: Cluster) -> CodeObjects:
    return CodeObjects(cluster, "lab", "0123456789ab", {})


def folder(root: Path, size_bytes: int, *, repeats: bool = False) -> tar_stream.TarStream:
    root.mkdir()
    block = b"x" * 32 if repeats else b""
    parts = [block or hashlib.sha256(str(number).encode()).digest() for number in range(size_bytes // 32)]
    (root / "train.bin").write_bytes(b"".join(parts))
    return tar_stream.of_folder(root)


def test_what_is_small_once_compressed_goes_by_a_config_map(
    cluster: Cluster, code: CodeObjects, tmp_path: Path
) -> None:
    stream = folder(tmp_path / "data", 8 << 20, repeats=True)
    shipped = Shipping(code, None).ship("data.train", "key", stream)
    ((file, name),) = shipped.config_maps.items()
    content = base64.b64decode(cluster.objects[name]["binaryData"][file])
    assert len(content) < 1 << 20
    assert shipped.entry["sha256"] == hashlib.sha256(content).hexdigest()
    assert shipped.entry["path"] == f"/autotrain/code/{file}"


def test_what_is_too_big_is_refused_with_what_to_add_to_the_profile(code: CodeObjects, tmp_path: Path) -> None:
    with pytest.raises(BackendError) as caught:
        Shipping(code, None).ship("data.train", "key", folder(tmp_path / "data", 2 << 20))
    assert "data.train has 2.1 MB" in caught.value.found
    assert "storage: {pvc: NAME}" in caught.value.action


def test_what_is_too_big_goes_to_the_server_of_the_profile_once(code: CodeObjects, tmp_path: Path) -> None:
    stream = folder(tmp_path / "data", 2 << 20)
    with serving(FileServer()) as server:
        way = Shipping(code, RemoteStorage({"http": {"url": server.url}}, dict))
        entries = [way.ship("data.train", "key", stream).entry for _ in range(3)]
        assert [method for method, _ in server.requests] == ["HEAD", "PUT", "HEAD", "HEAD"]
        assert entries[0] == entries[2]
        (place,) = archives.place([entries[0]], str(tmp_path / "pod"), {}).values()
    assert (Path(place) / "train.bin").stat().st_size == 2 << 20


def test_where_this_machine_has_the_volume_mounted_pods_find_the_archive_unpacked(
    code: CodeObjects, tmp_path: Path
) -> None:
    (tmp_path / "mount").mkdir()
    stream = folder(tmp_path / "data", 2 << 20)
    entry = Shipping(code, MountedStorage(str(tmp_path / "mount"))).ship("data.train", "key", stream).entry
    (place,) = archives.place([entry], str(tmp_path / "mount" / "data"), {}).values()
    assert (Path(place) / "train.bin").stat().st_size == 2 << 20


def test_a_mount_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="is not there"):
        MountedStorage(str(tmp_path / "none")).send(folder(tmp_path / "data", 64), "0" * 64)


@pytest.mark.parametrize(
    ("storage", "is_volume"),
    [({"pvc": "x"}, True), ({"nfs": {"server": "s", "path": "/p"}}, True), ({"host_path": "/x"}, True),
     ({"azure_file": {"share": "s", "secret": "t"}}, True), ({"s3": {"bucket": "b"}}, False), (None, False)],
)  # fmt: skip
def test_volumes_are_told_from_servers(storage: dict | None, is_volume: bool) -> None:
    assert has_volume({"storage": storage}) is is_volume
    assert (shipping.remote_place({"storage": storage}) is None) is (is_volume or storage is None)


def test_the_secret_of_a_server_is_found() -> None:
    assert shipping.remote_secret({"storage": {"s3": {"bucket": "b", "secret": "keys"}}}) == "keys"
    assert shipping.remote_secret({"storage": {"http": {"url": "https://x", "secret": "web"}}}) == "web"
    assert shipping.remote_secret({"storage": {"http": "https://x"}}) == ""


def prepared(trial: dict, tmp_path: Path) -> dict:
    whole = {"python": sys.executable, **trial}
    preparing.prepare(whole, str(tmp_path / "run"), {})
    return whole


def test_a_pod_finds_its_data_and_the_checkpoints_it_goes_on_from(
    cluster: Cluster, code: CodeObjects, tmp_path: Path
) -> None:
    way = Shipping(code, None)
    shipped = [way.ship(name, name, folder(tmp_path / name, 64)) for name in ("data.train", preparing.CHECKPOINTS)]
    entries = []
    for one in shipped:
        ((file, name),) = one.config_maps.items()
        (tmp_path / file).write_bytes(base64.b64decode(cluster.objects[name]["binaryData"][file]))
        entries.append({**one.entry, "path": str(tmp_path / file)})
    trial = {"archives": entries, "data": [{"name": "train", "kind": "copy", "file_name": "train.bin", "path": ""}]}
    made = prepared(trial, tmp_path)
    assert Path(made["data"][0]["path"]).stat().st_size == 64
    assert [path.name for path in Path(made["resume_from"]).iterdir()] == ["train.bin"]
    assert made["data_folder"] == str(tmp_path / "run" / "data")
    assert "archives" not in made


def test_environments_are_made_once_per_storage(tmp_path: Path) -> None:
    assert prepared({"on_volume": True}, tmp_path)["environments"] == layout.ENVIRONMENTS
    assert prepared({}, tmp_path)["environments"] == str(tmp_path / "run" / "environments")


def test_a_trial_goes_on_from_the_checkpoints_of_its_last_attempt_on_the_volume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "TRIALS", str(tmp_path / "trials"))
    assert "resume_from" not in prepared({"on_volume": True, "resume_job": "e-1-1"}, tmp_path)
    (tmp_path / "trials" / "e-1-1" / "node-0" / "checkpoints" / "step-5").mkdir(parents=True)
    made = prepared({"on_volume": True, "resume_job": "e-1-1"}, tmp_path)
    assert made["resume_from"] == str(tmp_path / "trials" / "e-1-1" / "node-0" / "checkpoints")


def test_in_the_image_that_the_header_names_the_place_is_the_environment(tmp_path: Path) -> None:
    asked = to_json(PythonEnvironment("image", "team/torch:2"))
    assert prepared({"python_environment": asked}, tmp_path)["python_environment"]["kind"] == "place"


def test_what_the_image_lacks_is_told_before_the_trial_with_the_line_that_installs_it(tmp_path: Path) -> None:
    packages = [to_json(PythonPackage("numpy", "2.0.0")), to_json(PythonPackage("no-such-package", "1.2.3"))]
    with pytest.raises(DataError) as caught:
        prepared({"python_packages": packages}, tmp_path)
    status = preparing.failed_status(caught.value)
    assert status["state"] == "FAILED"
    assert status["kind"] == "environment"
    assert "missing no-such-package" in status["reason"]
    assert "-m pip install no-such-package==1.2.3" in status["reason"]
    assert "image" in status["reason"]


def test_other_versions_are_said_and_not_refused(tmp_path: Path) -> None:
    trial = {"python": sys.executable, "python_packages": [to_json(PythonPackage("pytest", "1.0"))]}
    (line,) = preparing.prepare(trial, str(tmp_path), {})
    assert "pytest" in line
    assert "here 1.0" in line


def test_an_archive_that_is_not_on_the_volume_any_more_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data\.train is not in"):
        prepared({"archives": [{"name": "data.train", "sha256": "0" * 64}]}, tmp_path)


def test_a_mounted_folder_takes_an_archive_once(tmp_path: Path) -> None:
    stream = folder(tmp_path / "source", 64)
    storage = volume_storage.MountedStorage(str(tmp_path))
    storage.send(stream, stream.sha256)
    (tmp_path / "source" / "train.bin").unlink()  # not read again
    storage.send(stream, stream.sha256)

"""Which way an archive goes to its pods, and what the pod makes ready before the trial begins."""

from __future__ import annotations

import hashlib
import sys
from functools import partial
from pathlib import Path

import pytest

from jupyter_autotrain.agent.environments.python_environment import PythonEnvironment, PythonPackage
from jupyter_autotrain.agent.json import to_json
from jupyter_autotrain.agent.objects import archives
from jupyter_autotrain.agent.pods import places, preparing
from jupyter_autotrain.backends.kubernetes.storage import shipping, trial_needs, volume_storage
from jupyter_autotrain.backends.kubernetes.storage.remote_storage import RemoteStorage
from jupyter_autotrain.backends.kubernetes.storage.shipping import Shipping
from jupyter_autotrain.backends.kubernetes.storage.volume_storage import MountedStorage
from jupyter_autotrain.backends.kubernetes.workloads.volumes import has_volume
from jupyter_autotrain.backends.transfer.folders import FolderManifest, SentFile, scan_folder
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home, home_identity
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import BackendError, DataError
from tests.labs.file_server import FileServer, serving

USER = "home/e"


def folder(root: Path, size_bytes: int, *, repeats: bool = False) -> FolderManifest:
    root.mkdir()
    block = b"x" * 32 if repeats else b""
    parts = [block or hashlib.sha256(str(number).encode()).digest() for number in range(size_bytes // 32)]
    (root / "train.bin").write_bytes(b"".join(parts))
    return scan_folder(root)


def test_what_is_small_once_compressed_goes_by_a_config_map(tmp_path: Path) -> None:
    archive = Shipping(None).archive("data.train", "key", lambda: folder(tmp_path / "data", 8 << 20, repeats=True))
    assert archive.file is not None
    assert archive.file.fits
    assert archive.entry["sha256"] == hashlib.sha256(archive.file.content).hexdigest()
    assert archive.entry["path"] == f"/autotrain/code/{archive.file.name}"


def test_what_is_too_big_is_refused_with_what_to_add_to_the_profile(tmp_path: Path) -> None:
    with pytest.raises(BackendError) as caught:
        Shipping(None).archive("data.train", "key", lambda: folder(tmp_path / "data", 2 << 20))
    assert "data.train has 2.1 MB" in caught.value.found
    assert "storage: {pvc: NAME}" in caught.value.action


def test_what_is_too_big_goes_to_the_server_of_the_profile_once(tmp_path: Path) -> None:
    stream = folder(tmp_path / "data", 2 << 20)
    with serving(FileServer()) as server:
        ways = Shipping(RemoteStorage({"http": {"url": server.url}}, dict))
        archives_sent = [ways.archive("data.train", "key", lambda: stream) for _ in range(3)]
        assert server.requests == []
        for archive in archives_sent:
            ways.send(archive, USER)
        entries = [archive.entry for archive in archives_sent]
        assert [method for method, _ in server.requests] == ["HEAD", "PUT", "HEAD", "HEAD"]
        assert entries[0] == entries[2]
        (place,) = archives.place([entries[0]], str(tmp_path / "pod"), {}).values()
    assert (Path(place) / "train.bin").stat().st_size == 2 << 20


def test_what_s3_does_not_take_in_one_piece_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    stream = FolderManifest.of([SentFile("train.bin", (5 << 30) + 1, "0" * 64, tmp_path / "train.bin")], [])
    with pytest.raises(BackendError) as caught:
        RemoteStorage({"s3": {"bucket": "team", "endpoint": "http://127.0.0.1:1"}}, dict).send(stream, USER)
    assert "5.37 GB" in caught.value.found
    assert "one piece" in caught.value.expected
    assert "{pvc: NAME}" in caught.value.action


def test_the_pod_that_writes_to_a_volume_is_the_user_of_trials_who_read_there() -> None:
    options = {
        "storage": {"pvc": "x"}, "service_account": "trainer",
        "security_context": {"runAsUser": 1000, "readOnlyRootFilesystem": True},
    }  # fmt: skip
    spec = volume_storage.manifest(options, "python:3.12", {"name": "l"})["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"] == {"runAsUser": 1000}
    assert container["securityContext"] == {"readOnlyRootFilesystem": True}
    assert spec["serviceAccountName"] == "trainer"


def test_where_this_machine_has_the_volume_mounted_pods_find_the_archive_unpacked(tmp_path: Path) -> None:
    (tmp_path / "mount").mkdir()
    ways = Shipping(MountedStorage(str(tmp_path / "mount")))
    archive = ways.archive("data.train", "key", lambda: folder(tmp_path / "data", 2 << 20))
    ways.send(archive, USER)
    (place,) = archives.place([archive.entry], str(tmp_path / "mount" / "data"), {}).values()
    assert (Path(place) / "train.bin").stat().st_size == 2 << 20


def test_a_mount_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="is not there"):
        MountedStorage(str(tmp_path / "none")).send(folder(tmp_path / "data", 64), USER)


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


def test_a_pod_finds_its_data_its_bundle_and_the_checkpoints_it_goes_on_from(tmp_path: Path) -> None:
    entries = []
    for name in ("data.train", places.CHECKPOINTS, places.BUNDLE):
        archive = Shipping(None).archive(name, name, partial(folder, tmp_path / name, 64))
        assert archive.file is not None
        (tmp_path / archive.file.name).write_bytes(archive.file.content)
        entries.append({**archive.entry, "path": str(tmp_path / archive.file.name)})
    trial = {"archives": entries, "data": [{"name": "train", "kind": "copy", "file_name": "train.bin", "path": ""}]}
    made = prepared(trial, tmp_path)
    assert Path(made["data"][0]["path"]).stat().st_size == 64
    assert [path.name for path in Path(made["resume_from"]).iterdir()] == ["train.bin"]
    assert [path.name for path in Path(made["bundle"]).iterdir()] == ["train.bin"]
    assert made["data_folder"] == str(tmp_path / "run" / "data")
    assert "archives" not in made


def test_environments_are_made_once_per_storage(tmp_path: Path) -> None:
    assert prepared({"on_volume": True}, tmp_path)["environments"] == places.ENVIRONMENTS
    assert prepared({}, tmp_path)["environments"] == str(tmp_path / "run" / "environments")


def test_a_trial_goes_on_from_the_checkpoints_of_its_last_attempt_on_the_volume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "EXPERIMENTS", str(tmp_path / "experiments"))
    trial = {"on_volume": True, "resumed": [places.attempt("home", "e", 1, 1)]}
    assert "resume_from" not in prepared(trial, tmp_path)
    for folder_of_it in ("node-0/checkpoints", "checkpoints"):  # of one that was rescaled, of any other
        saved = tmp_path / "experiments" / "home" / "e" / "1-1" / folder_of_it
        (saved / "step-5").mkdir(parents=True)
        (saved / "step-5" / "model.pt").touch()
        assert prepared(trial, tmp_path)["resume_from"] == str(saved)


def test_attempts_that_have_left_none_on_the_volume_hide_none_before_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "EXPERIMENTS", str(tmp_path / "experiments"))
    trial = {"on_volume": True, "resumed": [places.attempt("home", "e", 1, number) for number in (3, 2, 1)]}
    first, second = (tmp_path / "experiments" / "home" / "e" / f"1-{number}" / "checkpoints" for number in (1, 2))
    for folder_of_it in (first, second / "rank-1"):
        folder_of_it.mkdir(parents=True)
    (first / "step-000000000005.pkl").touch()
    (second / "rank-1" / "step-000000000007.pkl.draft").touch()
    assert prepared(trial, tmp_path)["resume_from"] == str(first)


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
    storage.send(stream, USER)
    (tmp_path / "source" / "train.bin").unlink()  # not read again
    storage.send(stream, USER)


def needs(options: dict, tmp_path: Path, **spec: object) -> trial_needs.TrialNeeds:
    trial = TrialSpec("e", 1, 2, **spec)
    return trial_needs.of_trial(trial, BackendContext(Home(tmp_path)), options, Shipping(None))


def test_the_checkpoints_of_a_trial_lie_on_the_volume_and_outlive_its_pods(tmp_path: Path) -> None:
    options = {"storage": {"pvc": "training", "sub_path": "team/ada"}}
    found = needs(options, tmp_path, resume_attempt=1)
    assert [volume["persistentVolumeClaim"]["claimName"] for volume in found.volumes] == ["training"]
    whole, own = found.mounts
    own_home = home_identity(Home(tmp_path))
    assert (whole["mountPath"], whole["subPath"]) == ("/autotrain/storage", "team/ada")
    assert (own["mountPath"], own["subPath"]) == (
        "/autotrain/run/trial/checkpoints", f"team/ada/experiments/{own_home}/e/1-2/checkpoints",
    )  # fmt: skip
    assert found.fields["resumed"] == [f"{own_home}/e/1-1"]
    assert found.fields["on_volume"] is True


def test_credentials_reach_a_pod_by_its_secret_and_never_by_the_manifest(tmp_path: Path) -> None:
    found = needs({"storage": {"s3": {"bucket": "team", "secret": "keys"}}}, tmp_path)
    names = [variable["name"] for variable in found.variables]
    assert names == [f"AUTOTRAIN_STORAGE_{name}" for name in trial_needs.CREDENTIALS[:3]]
    assert all(variable["valueFrom"]["secretKeyRef"]["name"] == "keys" for variable in found.variables)
    assert needs({"storage": {"http": {"url": "https://x"}}}, tmp_path).variables == ()


def test_only_the_credentials_of_a_secret_are_read() -> None:
    data = {"AWS_ACCESS_KEY_ID": "aWQ=", "AWS_SECRET_ACCESS_KEY": "c2VjcmV0Cg==", "other": "eA==", "AUTHORIZATION": "x"}
    assert trial_needs.secret_values({"data": data}) == {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}


def test_checkpoints_without_a_volume_come_from_the_home(tmp_path: Path) -> None:
    folder(tmp_path / "saved", 64)
    trial = TrialSpec("e", 1, 2, resume_attempt=1)
    found = trial_needs.of_trial(trial, BackendContext(Home(tmp_path)), {}, Shipping(None), (1, tmp_path / "saved"))
    assert [archive.entry["name"] for archive in found.archives] == ["checkpoints"]
    assert len(found.files) == 1
    assert found.volumes == ()


def test_a_pod_looks_on_the_volume_for_no_older_checkpoints_than_the_home_has(tmp_path: Path) -> None:
    folder(tmp_path / "saved", 64)
    trial = TrialSpec("e", 1, 5, resume_attempt=4)
    in_home = (2, tmp_path / "saved")
    found = trial_needs.of_trial(trial, BackendContext(Home(tmp_path)), {}, Shipping(None), in_home)
    assert [str(name).rpartition("/")[2] for name in found.fields["resumed"]] == ["1-4", "1-3", "1-2"]


def test_a_bundle_that_no_config_map_holds_goes_by_the_storage(tmp_path: Path) -> None:
    context = BackendContext(Home(tmp_path))
    bundle = context.bundle(TrialSpec("e", 1, 1))
    bundle.parent.mkdir(parents=True)
    folder(bundle, 2 << 20)
    (tmp_path / "mount").mkdir()
    trial = TrialSpec("e", 1, 1, bundle_sha256="0" * 64)
    ways = Shipping(MountedStorage(str(tmp_path / "mount")))
    found = trial_needs.of_trial(trial, context, {"storage": {"pvc": "x"}}, ways)
    trial_needs.send(found, trial, context, ways)
    assert found.fields["archives"][0]["name"] == places.BUNDLE
    assert len(list((tmp_path / "mount" / "data" / "archives").glob("*/*/train.bin"))) == 1

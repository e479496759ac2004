"""Labels and files that `data:` names elsewhere are fetched when they have changed, by the real libraries of each."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from jupyter_autotrain.client.fetching.fetched import fetch_all, unused
from jupyter_autotrain.client.fetching.source import label_source, located
from jupyter_autotrain.client.waiting import Progress
from jupyter_autotrain.core.data import DataKind, DataOrigin, DataSource
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import AutotrainError, DataError
from tests.labs.label_doubles import CVAT_TOKEN, LABEL_STUDIO_TOKEN, CvatDouble, LabelStudioDouble, serving

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the libraries themselves
PETS = DataOrigin("cvat", "task/12", format="coco")
REVIEWS = DataOrigin("label_studio", "project/7", format="json")


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


@pytest.fixture
def cvat():
    pytest.importorskip("cvat_sdk", reason="cvat-sdk is not installed")
    with serving(CvatDouble()) as server:
        yield server


@pytest.fixture
def label_studio():
    pytest.importorskip("label_studio_sdk", reason="label-studio-sdk is not installed")
    with serving(LabelStudioDouble()) as server:
        yield server


def fetched(home, origin, environ, progress=None):
    spec = ExperimentSpec("e", Bundle(), data=(DataSource("pets", DataKind.COPY, origin=origin),))
    (source,) = fetch_all(home, spec, environ, progress).data
    return source


def of_cvat(server):
    return {"CVAT_HOST": server.url, "CVAT_ACCESS_TOKEN": CVAT_TOKEN}


def test_labels_of_cvat_come_with_images_license_and_counts_and_again_only_when_they_have_changed(home, cvat):
    first = fetched(home, PETS, of_cvat(cvat))
    assert first.origin.license == "CC-BY-4.0"
    assert dict(first.origin.counts) == {"images": 3, "annotations": 3}
    assert fetched(home, PETS, of_cvat(cvat)) == first
    assert cvat.exports == 1
    cvat.label("cat-2.png", "cat")
    second = fetched(home, PETS, of_cvat(cvat))
    assert second.origin.revision != first.origin.revision
    assert dict(second.origin.counts)["images"] == 4
    assert cvat.exports == 2
    assert cvat.faults == []
    for source, images in ((first, 3), (second, 4)):  # an experiment with the first one still reads it
        assert len([*(home.root / source.local_path).glob("images/default/*.png")]) == images


@pytest.fixture
def shown(monkeypatch):
    """Collect the lines of progress, without the half second before the first one and the pauses between them."""
    monkeypatch.setattr("jupyter_autotrain.client.waiting._SHOW_AFTER_S", 0.0)
    monkeypatch.setattr("jupyter_autotrain.client.waiting._UPDATE_EVERY_S", 0.0)
    return []


def test_it_is_shown_that_cvat_prepares_an_export_and_then_how_much_of_it_has_come(home, cvat, shown):
    with Progress(shown.append, lambda: shown.append("cleared")) as progress:
        fetched(home, PETS, of_cvat(cvat), progress)
    assert shown[0] == "Fetching data.pets: its server prepares it   (interrupt: nothing is sent)"
    assert shown[-2].startswith("Fetching data.pets: [########################] ")
    assert shown[-1] == "cleared"


def test_it_is_shown_how_much_of_an_export_of_label_studio_has_come(home, label_studio, shown):
    environ = {"LABEL_STUDIO_URL": label_studio.url, "LABEL_STUDIO_API_KEY": LABEL_STUDIO_TOKEN}
    label_studio.tasks[0]["data"]["text"] = "x" * 3_000_000
    with Progress(shown.append, lambda: None) as progress:
        fetched(home, REVIEWS, environ, progress)
    assert shown[0] == "Fetching data.pets: its server prepares it   (interrupt: nothing is sent)"
    assert len(shown) > 3
    assert all("] " in line and " of 3 MB " in line for line in shown[1:])
    assert "[########################] 3 MB of 3 MB" in shown[-1]


def test_it_is_shown_how_much_of_a_folder_has_come_through_fsspec(home, shown):
    memory = pytest.importorskip("fsspec", reason="fsspec is not installed").filesystem("memory")
    memory.pipe({"/big/1.bin": b"x" * 3_000_000, "/big/2.bin": b"x" * 1_000_000})
    with Progress(shown.append, lambda: None) as progress:
        fetched(home, DataOrigin("fsspec", "memory://big"), {}, progress)
    assert "[##################......] 3 MB of 4 MB" in shown[0]
    assert "[########################] 4 MB of 4 MB" in shown[-1]


def test_a_token_goes_to_the_server_beside_it_alone(home, cvat):
    elsewhere = replace(PETS, server=cvat.url)
    with pytest.raises(DataError, match="no token"):
        fetched(home, elsewhere, {"CVAT_HOST": "https://app.cvat.ai", "CVAT_ACCESS_TOKEN": CVAT_TOKEN})
    assert cvat.requests == []


def test_a_server_that_refuses_is_told_without_the_token(home, cvat):
    with pytest.raises(DataError, match=r"data\.pets: cvat at http://127\.0\.0\.1:\d+ does not give task/12") as told:
        fetched(home, PETS, {"CVAT_HOST": cvat.url, "CVAT_ACCESS_TOKEN": "a-wrong-token"})
    assert "a-wrong-token" not in str(told.value)
    assert [*home.fetched.glob("*/*")] == []


def test_samples_become_a_task_of_cvat_with_the_same_labels_the_least_sure_first(cvat, tmp_path):
    samples = []
    for number, uncertainty in ((1, 0.9), (2, 0.5)):
        path = tmp_path / f"{number:04}-image.png"
        path.write_bytes(f"image {number}".encode())
        samples.append((path, uncertainty))
    with label_source(located(PETS, of_cvat(cvat)), of_cvat(cvat)) as server:
        assert server.send(PETS, "digits#3", samples) == "task/13"
    assert cvat.faults == []
    made = cvat.made[13]
    assert (made["name"], made["labels"]) == ("digits#3", ["cat", "dog"])
    assert sorted(made["files"]) == ["0001-image.png", "0002-image.png"]
    assert made["files"]["0002-image.png"] == b"image 2"


def test_labels_of_label_studio_are_fetched_when_one_of_them_has_changed(home, label_studio):
    environ = {"LABEL_STUDIO_URL": f"{label_studio.url}/", "LABEL_STUDIO_API_KEY": LABEL_STUDIO_TOKEN}
    first = fetched(home, REVIEWS, environ)
    assert dict(first.origin.counts) == {"tasks": 2, "annotations": 2}
    assert fetched(home, REVIEWS, environ) == first
    label_studio.tasks[0]["annotations"][0]["result"][0]["value"]["choices"] = ["negative"]
    second = fetched(home, REVIEWS, environ)
    assert second.local_path != first.local_path
    (labels,) = (home.root / second.local_path).iterdir()
    assert json.loads(labels.read_bytes()) == label_studio.tasks
    assert label_studio.faults == []


def test_samples_become_tasks_of_label_studio_by_the_variable_of_its_interface(label_studio, tmp_path):
    (tmp_path / "one.txt").write_text("so so")
    environ = {"LABEL_STUDIO_URL": label_studio.url, "LABEL_STUDIO_API_KEY": LABEL_STUDIO_TOKEN}
    with label_source(located(REVIEWS, environ), environ) as server:
        server.send(REVIEWS, "reviews#1", [(tmp_path / "one.txt", 0.75)])
    assert label_studio.faults == []
    (task,) = label_studio.imported
    assert task["data"] == {"text": "so so", "file": "one.txt", "uncertainty": 0.75, "batch": "reviews#1"}


def test_a_folder_is_read_through_fsspec_and_again_when_a_file_of_it_has_changed(home):
    memory = pytest.importorskip("fsspec", reason="fsspec is not installed").filesystem("memory")
    memory.pipe({"/pets/cats/1.txt": b"one", "/pets/2.txt": b"two"})
    origin = DataOrigin("fsspec", "memory://pets")
    first = fetched(home, origin, {})
    assert dict(first.origin.counts) == {"files": 2}
    root = home.root / first.local_path
    assert root.name == "pets"
    assert {path.name: path.read_bytes() for path in root.rglob("*.txt")} == {"1.txt": b"one", "2.txt": b"two"}
    assert fetched(home, origin, {}) == first
    memory.pipe("/pets/2.txt", b"two!")
    assert (home.root / fetched(home, origin, {}).local_path / "2.txt").read_bytes() == b"two!"
    memory.rm("/pets", recursive=True)
    with pytest.raises(DataError, match="does not give memory://pets"):
        fetched(home, origin, {})


def test_one_file_is_read_through_fsspec_and_stays_the_same_when_it_is_read(home, tmp_path):
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    (tmp_path / "train.csv").write_text("x,y\n")
    origin = DataOrigin("fsspec", f"file://{tmp_path}/train.csv", license="CC0-1.0")
    first = fetched(home, origin, {})
    assert (home.root / first.local_path).read_text() == "x,y\n"
    (tmp_path / "train.csv").read_text()
    assert fetched(home, origin, {}) == first
    assert "license: CC0-1.0" in str(first.origin)


def test_a_revision_that_no_experiment_has_is_unused(home):
    memory = pytest.importorskip("fsspec", reason="fsspec is not installed").filesystem("memory")
    memory.pipe("/once.txt", b"one")
    source = fetched(home, DataOrigin("fsspec", "memory://once.txt"), {})
    assert [*unused(home, [])] == [(home.root / source.local_path).parent]


def test_what_fsspec_does_not_know_is_told(home):
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    with pytest.raises(DataError, match="Protocol not known"):
        fetched(home, DataOrigin("fsspec", "nowhere://x"), {})


def test_files_have_no_labels():
    with pytest.raises(AutotrainError, match="has files and no labels"):
        label_source(DataOrigin("fsspec", "memory://pets"), {})

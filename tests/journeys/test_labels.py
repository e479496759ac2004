"""From labels of CVAT to a trial, and from what it was least sure of to a new task; curves in TensorBoard's files."""

from __future__ import annotations

import pytest

import jupyter_autotrain as at
from jupyter_autotrain.testing import wait_until
from tests.labs.label_doubles import CVAT_TOKEN, CvatDouble, serving

pytest.importorskip("cvat_sdk", reason="cvat-sdk is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the SDK itself

CELL = """\
%%autotrain pets --wait
data: {pets: {cvat: task/12, format: coco}, pool: ./pool}
objective: maximize images
---
import json
labels = json.loads((data.pets / "annotations/instances_default.json").read_text())
report(step=0, images=len(labels["images"]))
with open("uncertain.csv", "w") as file:
    file.write("data,file,uncertainty\\n")
    for number, image in enumerate(sorted(data.pool.rglob("*.png"))):
        file.write(f"pool,{image.relative_to(data.pool)},{number / 10}\\n")
    file.write("pets,images/default/dog-1.png,0.95\\n")
"""


@pytest.fixture
def cvat(monkeypatch):
    with serving(CvatDouble()) as server:
        monkeypatch.setenv("CVAT_HOST", server.url)
        monkeypatch.setenv("CVAT_ACCESS_TOKEN", CVAT_TOKEN)
        yield server


def test_the_least_sure_samples_of_a_trial_become_a_task_and_its_labels_reach_the_next_one(
    notebook, home, cvat, tmp_path
):
    for folder in ("a", "b"):
        (tmp_path / "pool" / folder).mkdir(parents=True)
        (tmp_path / "pool" / folder / "same.png").write_bytes(f"image {folder}".encode())
    _, shown = notebook.run(CELL)
    first = at.attach("pets")
    assert first.state == "SUCCEEDED", shown
    assert first.best.value == 3
    _, card = notebook.run("%autotrain show pets")
    assert "data.pets: cvat task/12 · coco · 3 images, 3 annotations · license: CC-BY-4.0" in card
    _, said = notebook.run("%autotrain label pets -n 2")
    assert f"Sent 2 of 3 samples to {cvat.url} as task/13" in said
    files = cvat.made[13]["files"]
    assert sorted(files) == ["0001-dog-1.png", "0002-same.png"]
    assert files["0002-same.png"] == b"image b"
    cvat.label("same.png", "cat")
    notebook.run(CELL)
    assert at.attach("pets").best.value == 4
    assert cvat.exports == 2
    assert cvat.faults == []
    assert not any(CVAT_TOKEN.encode() in path.read_bytes() for path in home.root.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("pool,../../secret.txt,1", "no file of data.pool"),
        ("nothing,a.png,1", "none of the data"),
        ("pool,a.png,nan", "the uncertainty 'nan'"),
    ],
)
@pytest.mark.long
def test_a_trial_can_name_only_files_that_it_was_submitted_with(notebook, cvat, tmp_path, line, said):
    (tmp_path / "pool").mkdir()
    (tmp_path / "pool" / "a.png").write_bytes(b"image")
    (tmp_path / "secret.txt").write_text("secret")
    head = CELL.partition("import json")[0]
    notebook.run(
        f"{head}report(step=0, images=1)\nopen('uncertain.csv', 'w').write('data,file,uncertainty\\n{line}\\n')"
    )
    _, shown = notebook.run("%autotrain label pets")
    assert said in shown
    assert cvat.made == {}


def test_event_files_of_a_cell_are_written_while_it_is_mirrored(notebook, tmp_path, monkeypatch):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    monkeypatch.setenv("TENSORBOARD_LOGDIR", str(tmp_path / "logs"))
    cell = "for step in range(3):\n    report(step=step, loss=1 / (step + 1))"
    notebook.run(f"%%autotrain unsure --wait\ntrack: tensorboard\n---\n{cell}")
    wait_until(lambda: _values(tmp_path / "logs") == [1, 0.5, pytest.approx(1 / 3)], "the curve", within_s=240)


def _values(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = [*folder.rglob("events.out.*")]
    if not found:
        return []
    read = EventAccumulator(str(found[0].parent))
    read.Reload()
    return [event.value for event in read.Scalars("loss")] if "loss" in read.scalars.Keys() else []

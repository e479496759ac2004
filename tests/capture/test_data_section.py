"""The name `data` of a header with a section `data:`, and the files that it sends."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from jupyter_autotrain import capture
from jupyter_autotrain.agent.ranks.data import DataPaths
from jupyter_autotrain.capture import Cell
from jupyter_autotrain.core.data import DataKind, DataSource
from jupyter_autotrain.errors import CaptureError

READS = "rows = data.train.read_text()\nreport(rows=len(rows))"


def captured(tmp_path: Path, code: str, namespace: dict[str, object], **paths: str) -> capture.Capture:
    cells = [Cell(1, "data = [1, 2]")] if "data" in namespace else []
    return capture.capture(code, namespace, cells, cwd=tmp_path, data=paths)


def how(found: capture.Capture, name: str) -> list[str]:
    return [row.how for row in found.captured if row.name == name]


def test_with_the_section_data_is_the_trials_and_nothing_is_reported(tmp_path: Path) -> None:
    found = captured(tmp_path, READS, {}, train="train.csv")
    assert how(found, "data") == ["builtin"]
    assert found.differences == ()


def test_without_the_section_data_is_the_notebooks_as_ever(tmp_path: Path) -> None:
    found = captured(tmp_path, "report(n=len(data))", {"data": [1, 2]})
    assert how(found, "data") == ["data"]
    with pytest.raises(CaptureError, match="does not exist"):
        captured(tmp_path, READS, {})


def test_a_notebooks_data_that_the_cell_reads_is_an_error_with_both_ways_out(tmp_path: Path) -> None:
    with pytest.raises(CaptureError) as caught:
        captured(tmp_path, READS, {"data": [1, 2]}, train="train.csv")
    assert caught.value.found == (
        "The cell reads `data`, which is the notebook's (a list from cell [1]), and the header has a section `data:`."
    )
    assert "trial.data.NAME" in caught.value.action


def test_a_notebooks_data_that_the_cell_does_not_read_is_no_error(tmp_path: Path) -> None:
    code = "rows = trial.data.train.read_text()\ndata = rows.split()\nreport(n=len(data))"
    found = captured(tmp_path, code, {"data": [1, 2]}, train="train.csv")
    assert how(found, "trial") == ["builtin"]
    assert found.differences == ()


def test_paths_that_the_notebook_made_itself_stand_for_the_trials(tmp_path: Path) -> None:
    found = captured(tmp_path, READS, {"data": DataPaths(train="train.csv")}, train="train.csv")
    assert how(found, "data") == ["builtin"]


def test_what_is_sent_as_data_is_not_sent_with_the_code_too(tmp_path: Path) -> None:
    for name in ("train.csv", "images/1.txt", "other.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    code = "import os\nopen('train.csv')\nopen('other.csv')\nos.listdir('images')\nopen(data.images / '1.txt')"
    found = captured(tmp_path, code, {}, train="./train.csv", images=str(tmp_path / "images"))
    assert list(found.files) == ["other.csv"]
    assert found.differences == ()


def test_an_exported_script_finds_the_data_where_it_lies_here(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("1,2\n")
    (tmp_path / "weights.bin").write_bytes(b"w" * 5)
    code = "report(rows=len(data.train.read_text()), weights=len(trial.data.weights.read_bytes()))"
    found = captured(tmp_path, code, {}, train="train.csv", weights="")
    capture.write_bundle(found, tmp_path / "bundle")
    url = (tmp_path / "weights.bin").as_uri()
    sources = (
        DataSource("train", DataKind.COPY, local_path=str(tmp_path / "train.csv")),
        DataSource("weights", DataKind.URL, url=url, sha256=sha256(b"w" * 5).hexdigest(), file_name="w.bin"),
    )
    (tmp_path / "alone").mkdir()
    capture.export_script(tmp_path / "bundle", {}, tmp_path / "alone" / "trial.py", sources=sources)
    done = subprocess.run(
        [sys.executable, "trial.py"], cwd=tmp_path / "alone", capture_output=True, text=True, check=True
    )
    assert done.stdout == "step 0: rows=4 weights=5\n"
    assert (tmp_path / "alone" / "w.bin").exists()

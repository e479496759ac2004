"""The section `data:` of a header."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_autotrain import header
from jupyter_autotrain.core.data import DataKind, DataOrigin, DataSource
from jupyter_autotrain.core.spec import Bundle
from jupyter_autotrain.errors import HeaderError

SHA256 = "9f" * 32


def parsed(folder: Path, text: str) -> header.Header:
    return header.parse_cell("", f"{text}\n---\n1", header.HeaderContext(folder, {})).header


def faults(folder: Path, text: str) -> str:
    with pytest.raises(HeaderError) as caught:
        parsed(folder, text)
    return str(caught.value)


def test_the_three_forms_become_sources(tmp_path: Path) -> None:
    (tmp_path / "train.csv").touch()
    text = "data:\n  train: ./train.csv\n  images: {path: /mnt/x}\n"
    text += f"  w: {{url: 'https://x.org/a/w%20b.pt', sha256: {SHA256}}}"
    spec = parsed(tmp_path, text).to_spec(bundle=Bundle(), name="e")
    assert spec.data == (
        DataSource("train", DataKind.COPY, local_path="./train.csv"),
        DataSource("images", DataKind.PATH, path="/mnt/x"),
        DataSource("w", DataKind.URL, url="https://x.org/a/w%20b.pt", sha256=SHA256, file_name="w b.pt"),
    )


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("./trian.csv", "line 3: data.a: './trian.csv' is not there; did you mean 'train.csv'?"),
        ("'*.csv'", "data.a.send: '*.csv'; expected one file or folder; name the folder that holds them"),
        ("{path: mnt/x}", "data.a.path: 'mnt/x'; expected a path from the root or from ~"),
        ("{pth: /mnt/x}", "unknown key 'pth' in data.a; did you mean 'path'?"),
        (
            "{path: /x, url: 'https://x.org/w'}",
            "expected exactly one of send, path, url, clients, cvat and label_studio",
        ),
        ("{url: 'https://x.org/w'}", "expected `sha256:` beside `url:`, so that all trials read the same"),
        ("{path: /x, sha256: " + SHA256 + "}", "expected `sha256:` only beside `url:`"),
        ("{url: 'https://x.org/w', sha256: 12}", "data.a.sha256: '12'; expected 64 hexadecimal digits"),
        ("{url: 'ftp://x.org/w', sha256: " + SHA256 + "}", "expected the URL of a file, by https, http or file"),
        ("[1]", "expected a path, or a mapping"),
        ("{cvat: 12}", "data.a.cvat: '12'; expected a task or project by its number"),
        ("{label_studio: task/3}", "expected a project of Label Studio, such as project/7"),
        ("{path: /x, format: coco}", "expected `format:` only beside `cvat:` or `label_studio:`"),
        ("{cvat: task/12, server: app.cvat.ai}", "expected the https:// or http:// address of a server"),
        ("'gs://bucket/*.csv'", "expected one file or folder"),
    ],
)
def test_what_does_not_fit_is_told_with_its_line(tmp_path: Path, entry: str, said: str) -> None:
    (tmp_path / "train.csv").touch()
    assert said in faults(tmp_path, f"data:\n  a: {entry}")


def test_a_url_with_a_password_is_refused_and_not_shown(tmp_path: Path) -> None:
    said = faults(tmp_path, f"data: {{a: {{url: 'https://ada:pa55w0rd@x.org/w', sha256: {SHA256}}}}}")
    assert "pa55w0rd" not in said


def test_all_faults_of_the_entries_come_at_once(tmp_path: Path) -> None:
    said = faults(tmp_path, "data:\n  a: {}\n  2b: /x\n  c: {path: x}")
    assert [line.split(":")[0] for line in said.splitlines()] == ["line 3", "line 4", "line 5"]


def test_help_and_completion_know_the_keys_of_an_entry() -> None:
    text = header.help_text("data")
    assert "data.NAME.sha256: " in text
    assert "pathlib.Path" in text
    cell = "%%autotrain\ndata:\n  w: {"
    assert header.completions(cell, len(cell)).matches[:7] == (
        "send: ", "path: ", "clients: ", "url: ", "sha256: ", "cvat: ", "label_studio: ",
    )  # fmt: skip


def test_labels_and_addresses_are_copies_that_are_fetched_first(tmp_path: Path) -> None:
    text = "data:\n  pets: {cvat: task/12, license: CC0-1.0}\n  pool: gs://bucket/pool\n"
    text += "  words: {label_studio: project/7, server: 'https://x.org/', format: CSV}"
    spec = parsed(tmp_path, text).to_spec(bundle=Bundle(), name="e")
    assert [source.origin for source in spec.data] == [
        DataOrigin("cvat", "task/12", format="coco", license="CC0-1.0"),
        DataOrigin("fsspec", "gs://bucket/pool"),
        DataOrigin("label_studio", "project/7", "https://x.org", "CSV"),
    ]
    assert {(source.kind, source.local_path) for source in spec.data} == {(DataKind.COPY, "")}

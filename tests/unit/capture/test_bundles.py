"""A capture on disk, and functions captured for `submit`."""

# What the captured functions print is what is compared.

import functools
import json
import stat

import pytest

from jupyter_autotrain import capture
from jupyter_autotrain.agent.json import from_json
from jupyter_autotrain.core.spec import Bundle
from jupyter_autotrain.errors import CaptureError, ShipError


def test_a_bundle_holds_everything_and_is_private(notebook, tmp_path):
    (tmp_path / "note.txt").write_text("hello")
    (tmp_path / "note.txt").chmod(0o644)
    book = notebook("rows = [1, 2]", cwd=tmp_path)
    captured = book.capture("print(rows, open('note.txt').read())")
    bundle = capture.write_bundle(captured, tmp_path / "out" / "bundle", python="/usr/bin/python3")
    folder = tmp_path / "out" / "bundle"
    assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()) == [
        "bundle.json", "data/values.pkl", "files/note.txt", "main.py",
    ]  # fmt: skip
    assert from_json(Bundle, json.loads((folder / "bundle.json").read_text())) == bundle == capture.read_bundle(folder)
    assert (folder / "main.py").read_text() == captured.script
    modes = {stat.S_IMODE(p.stat().st_mode) for p in folder.rglob("*") if p.is_file()}
    folders = {stat.S_IMODE(p.stat().st_mode) for p in [folder, folder.parent, *folder.rglob("*")] if p.is_dir()}
    assert (modes, folders) == ({0o600, 0o400}, {0o700})  # what trials only read is read-only
    assert bundle.python == "/usr/bin/python3"
    assert bundle.size_bytes == sum(p.stat().st_size for p in folder.rglob("*") if p.is_file() and p.suffix != ".json")


def test_the_digest_tells_bundles_apart_and_equal_ones_alike(notebook, tmp_path):
    book = notebook("rows = [1]")
    digests = [
        capture.write_bundle(book.capture(code), tmp_path / str(index)).sha256
        for index, code in enumerate(["print(rows)", "print(rows)", "print(rows, 1)"])
    ]
    assert digests[0] == digests[1] != digests[2]


def test_a_notebook_function_is_captured_with_its_cell(notebook, tmp_path):
    book = notebook("k = 2", "def go(params):\n    return print(k)")
    captured = capture.from_function(book.namespace["go"], book.cells, cwd=tmp_path)
    assert "cell [2]:1" in captured.source_map
    assert next(row.origin for row in captured.captured if row.name == "k") == "cell [1]"


@pytest.mark.parametrize("function", [len, lambda params: 1, functools.partial(print, 1)])
def test_what_has_no_source_is_refused(function, tmp_path):
    with pytest.raises(CaptureError, match="no source"):
        capture.from_function(function, cwd=tmp_path)


def test_parameters_that_nothing_fills_are_named(tmp_path):
    def needs(a, b, c=1):
        return a, b, c

    with pytest.raises(CaptureError, match="nothing fills: a, b"):
        capture.from_function(needs, cwd=tmp_path)


def test_an_export_that_would_be_too_big_names_what_is(notebook, tmp_path):
    book = notebook("import random\nbig = random.randbytes(30_000)\nk = 1")
    capture.write_bundle(book.capture("print(big, k)"), tmp_path / "bundle")
    with pytest.raises(ShipError) as caught:
        capture.export_script(tmp_path / "bundle", {}, limit_bytes=10_000)
    assert "30 kB  big (data)" in str(caught.value)

"""A capture on disk, and functions captured for `submit`."""

# What the captured functions print is what is compared.
# ruff: noqa: T201

import asyncio
import functools
import json
import math
import stat

import pytest

from jupyter_autotrain import capture
from jupyter_autotrain.core.json import from_json
from jupyter_autotrain.core.spec import Bundle
from jupyter_autotrain.errors import CaptureError, ShipError

SCALE = 3


def helper(x):
    return math.floor(x) * SCALE


def train(params):
    print("trained", helper(params.lr), params["width"])
    return 7


def by_names(lr, *, width=1, other=5):
    print(lr, width, other)


async def waiting(params):
    await asyncio.sleep(0)
    print("waited", len(params))


@functools.lru_cache
def cached(params=None):
    print("cached", params)


def run(book, function, params, tmp_path, cells=()):
    captured = capture.from_function(function, cells, cwd=tmp_path, parameters=tuple(params))
    capture.write_bundle(captured, tmp_path / "bundle")
    return book.alone(capture.export_script(tmp_path / "bundle", params))


def test_a_bundle_holds_everything_and_is_private(notebook, tmp_path):
    (tmp_path / "note.txt").write_text("hello")
    (tmp_path / "note.txt").chmod(0o644)
    book = notebook("rows = [1, 2]", cwd=tmp_path)
    captured = book.capture("print(rows, open('note.txt').read())")
    bundle = capture.write_bundle(captured, tmp_path / "out" / "bundle", python="/usr/bin/python3")
    folder = tmp_path / "out" / "bundle"
    assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()) == [
        "bundle.json", "data/rows.pkl", "files/note.txt", "main.py",
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


def test_a_function_of_a_file_travels_with_what_it_uses(notebook, tmp_path):
    assert run(notebook, train, {"lr": 2.5, "width": 4}, tmp_path) == "trained 6 4\n"
    captured = capture.from_function(train, cwd=tmp_path)
    assert {row.name: row.how for row in captured.captured} == {
        "helper": "source", "math": "import", "SCALE": "data",
    }  # fmt: skip
    assert f"test_bundles.py:{train.__code__.co_firstlineno}" in captured.source_map
    assert captured.script.endswith("result = train(params=__autotrain_params__)\n")


def test_parameters_are_matched_by_name(notebook, tmp_path):
    assert run(notebook, by_names, {"lr": 1, "width": 2}, tmp_path) == "1 2 5\n"


def test_an_async_function_is_awaited(notebook, tmp_path):
    assert run(notebook, waiting, {"a": 1}, tmp_path) == "waited 1\n"


def test_a_decorated_function_is_captured_by_its_source(notebook, tmp_path):
    assert run(notebook, cached, {}, tmp_path) == "cached None\n"


def test_an_inner_function_brings_what_surrounds_it(notebook, tmp_path):
    factor = [2]

    def inner(params):
        print(helper(params.x) * factor[0])

    assert run(notebook, inner, {"x": 1.5}, tmp_path) == "6\n"


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


def test_a_text_is_captured_by_itself(notebook, tmp_path):
    captured = capture.capture("x = lr\nprint(x)\n", {}, cwd=tmp_path, parameters=["lr"])
    capture.write_bundle(captured, tmp_path / "bundle")
    assert notebook.alone(capture.export_script(tmp_path / "bundle", {"lr": 3})) == "3\n"
    with pytest.raises(CaptureError, match="nowhere"):
        capture.capture("nowhere", {}, cwd=tmp_path)


def test_an_export_that_would_be_too_big_names_what_is(notebook, tmp_path):
    book = notebook("import random\nbig = random.randbytes(30_000)\nk = 1")
    capture.write_bundle(book.capture("print(big, k)"), tmp_path / "bundle")
    with pytest.raises(ShipError) as caught:
        capture.export_script(tmp_path / "bundle", {}, limit_bytes=10_000)
    assert "30 kB  big (data)" in str(caught.value)

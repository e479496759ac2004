"""A capture on disk, and functions captured for `submit`."""

import asyncio

# What the captured functions print is what is compared.
# ruff: noqa: T201
import functools
import math

import pytest

from jupyter_autotrain import capture
from jupyter_autotrain.errors import CaptureError

SCALE = 3


def helper(x):
    return math.floor(x) * SCALE


def train(params):
    print("trained", helper(params.lr), params["width"])
    return 7


def by_names(lr, *, width=1, other=5):
    print(lr, width, other)


@functools.lru_cache
def cached(params=None):
    print("cached", params)


def run(book, function, params, tmp_path, cells=()):
    captured = capture.from_function(function, cells, cwd=tmp_path, parameters=tuple(params))
    capture.write_bundle(captured, tmp_path / "bundle")
    return book.alone(capture.export_script(tmp_path / "bundle", params))


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


async def waiting(params):
    await asyncio.sleep(0)
    print("waited", len(params))


def test_an_async_function_is_awaited(notebook, tmp_path):
    assert run(notebook, waiting, {"a": 1}, tmp_path) == "waited 1\n"


def test_a_decorated_function_is_captured_by_its_source(notebook, tmp_path):
    assert run(notebook, cached, {}, tmp_path) == "cached None\n"


def test_an_inner_function_brings_what_surrounds_it(notebook, tmp_path):
    factor = [2]

    def inner(params):
        print(helper(params.x) * factor[0])

    assert run(notebook, inner, {"x": 1.5}, tmp_path) == "6\n"


def test_a_text_is_captured_by_itself(notebook, tmp_path):
    captured = capture.capture("x = lr\nprint(x)\n", {}, cwd=tmp_path, parameters=["lr"])
    capture.write_bundle(captured, tmp_path / "bundle")
    assert notebook.alone(capture.export_script(tmp_path / "bundle", {"lr": 3})) == "3\n"
    with pytest.raises(CaptureError, match="nowhere"):
        capture.capture("nowhere", {}, cwd=tmp_path)

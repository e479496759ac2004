"""The launcher of a draft: the header's, or that of the library whose several workers the cell trains."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_autotrain import capture, header
from jupyter_autotrain.client.submission import Draft, capture_settings
from jupyter_autotrain.core.spec import Origin


@pytest.mark.parametrize(
    ("code", "settings", "launcher"),
    [
        ("import tensorflow as tf", {}, "tensorflow"),
        ("from paddle.distributed import get_rank", {}, "paddle"),
        ("import torch", {}, "env"),
        ("import paddle, tensorflow", {}, "env"),
        ("import tensorflow", {"launcher": "env"}, "env"),
        ("import tensorflow", {"launcher": "torchrun"}, "torchrun"),
        ("import tensorflow", {"resources": {}}, "env"),
    ],
)
def test_several_workers_of_a_library_have_its_launcher_unless_the_header_names_one(
    tmp_path: Path, code: str, settings: dict[str, object], launcher: str
) -> None:
    given = {"resources": {"workers_per_node": 2}, **settings}
    parsed = header.from_mapping(given, header.HeaderContext(tmp_path, {}))
    captured = capture.capture(code, {}, label="source", **capture_settings(parsed, tmp_path))
    assert Draft(parsed, captured, "e", Origin(), tmp_path, {}).spec().launcher == launcher

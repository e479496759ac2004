"""Tests of how large the front end is that an installation brings into the browser."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "jupyter_autotrain"
LIMIT_KB = 400
NOT_LOADED = {".map", ".json"}  # for developers' tools; a wheel has no maps


def compressed_kb(folder: Path) -> float:
    """All that a browser loads from a folder, as a server would compress it."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in NOT_LOADED]
    return sum(len(gzip.compress(path.read_bytes())) for path in files) / 1000


def test_the_extension_of_jupyterlab_is_small(capsys: pytest.CaptureFixture[str]) -> None:
    built = PACKAGE / "labextension" / "static"
    assert built.is_dir(), "the extension is not built: cd labextension && jlpm build"
    size_kb = compressed_kb(built)
    widgets_kb = compressed_kb(PACKAGE / "static")
    with capsys.disabled():
        sys.stdout.write(f"\nlabextension: {size_kb:.0f} kB compressed; bundles of the widgets: {widgets_kb:.0f} kB\n")
    assert 1 < size_kb <= LIMIT_KB
    assert 1 < widgets_kb <= LIMIT_KB

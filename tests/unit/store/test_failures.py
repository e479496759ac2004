"""Homes that cannot be: the message names what is wrong with the path, not the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.errors import StoreError
from jupyter_autotrain.store import Store


def refused(root: Path) -> StoreError:
    with pytest.raises(StoreError) as caught:
        Store.open(Home(root))
    assert "disk" not in str(caught.value)
    assert "JUPYTER_AUTOTRAIN_HOME" in caught.value.action
    return caught.value


@pytest.mark.parametrize("below", ["", "below"])
def test_a_home_that_is_a_file_is_told_as_such(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("")
    assert "a file is where a folder was expected" in refused(tmp_path / "file" / below).found


@pytest.mark.parametrize("name", ["x" * 300, "/".join(["y" * 200] * 40), "/".join(["z" * 100] * 6)])
def test_a_home_with_too_long_a_path_is_told_as_such_in_a_short_text(tmp_path: Path, name: str) -> None:
    found = refused(tmp_path / name).found
    assert "too long" in found
    assert len(found) < 300

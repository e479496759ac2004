"""A place keeps a bounded number of virtual environments; what somebody uses always stays."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain.agent.environments import eviction

PACKAGES = Path(eviction.__file__).parents[3]
# Holds an environment, becomes another program as a worker does, and ends when its input does.
USER = f"""
import os, sys
sys.path.insert(0, {str(PACKAGES)!r})
from jupyter_autotrain.agent.environments import eviction
assert eviction.hold(sys.argv[1])
os.execv("/bin/sh", ["sh", "-c", "echo held; cat"])
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three environments, used one after the other."""
    for number in (1, 2, 3):
        folder = tmp_path / f"env{number}"
        (folder / "lib").mkdir(parents=True)
        (folder / "lib" / "module.py").write_text("x" * 1000)
        (folder / eviction.COMPLETE).write_text("{}")
        os.utime(folder / eviction.COMPLETE, (number, number))
    return tmp_path


@pytest.fixture
def user(root: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that uses the environment that was used least recently."""
    argv = [sys.executable, "-I", "-S", "-c", USER, str(root / "env1")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        os.utime(root / "env1" / eviction.COMPLETE, (1, 1))
        yield process


def names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if path.is_dir())


def test_the_least_recently_used_go_before_another_one_is_made(root: Path) -> None:
    eviction.make_room(str(root), most=2)
    assert names(root) == ["env3"]


def test_nothing_goes_while_there_is_room(root: Path) -> None:
    eviction.make_room(str(root), most=4)
    assert names(root) == ["env1", "env2", "env3"]


def test_one_in_use_stays_also_when_its_user_has_become_another_program(
    root: Path, user: subprocess.Popen[bytes]
) -> None:
    assert [name for name, _ in eviction.unused(str(root))] == ["env2", "env3"]
    eviction.make_room(str(root), most=1)
    assert names(root) == ["env1"]
    assert not eviction.remove(str(root), "env1")
    user.communicate()
    assert eviction.remove(str(root), "env1")
    assert names(root) == []


def test_one_that_is_used_again_is_the_most_recently_used(root: Path) -> None:
    environ = {"root": str(root)}
    code = f"import sys; sys.path.insert(0, {str(PACKAGES)!r}); " + (
        f"from jupyter_autotrain.agent.environments import eviction; eviction.hold({str(root / 'env1')!r})"
    )
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, env=environ)
    assert [name for name, _ in eviction.unused(str(root))] == ["env2", "env3", "env1"]


def test_half_made_ones_are_neither_used_nor_counted(root: Path) -> None:
    (root / "env1" / eviction.COMPLETE).unlink()
    assert not eviction.hold(str(root / "env1"))
    assert eviction.unused(str(root)) == [("env2", 1002), ("env3", 1002)]


def test_a_place_without_environments_has_none(tmp_path: Path) -> None:
    assert eviction.unused(str(tmp_path / "none")) == []
    eviction.make_room(str(tmp_path / "none"))

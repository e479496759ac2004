"""Tests of what errors mean: for now or for good, and in words that name the disk or the path."""

from __future__ import annotations

import errno
import os

import pytest

from jupyter_autotrain.agent.system import disk
from jupyter_autotrain.errors import BackendError


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def test_an_error_passes_by_what_it_says_or_by_what_caused_it() -> None:
    lacking = OSError(errno.EMFILE, "Too many open files")
    assert disk.passes(lacking)
    assert disk.passes(caused(BackendError("no"), caused(ImportError("no"), lacking)))
    assert not disk.passes(OSError(errno.ENOENT, "No such file"))
    assert not disk.passes(ValueError("no"))


@pytest.mark.parametrize("free", [0, 3])
def test_any_error_may_pass_while_hardly_a_descriptor_is_free(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    left = [free]
    real = os.open

    def scarce(path: str, flags: int) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.EMFILE, "Too many open files", path)
        return real(path, flags)

    monkeypatch.setattr(os, "open", scarce)
    assert disk.passes(ValueError("no backend is found, since no folder can be listed"))


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "the disk of / is full ("),
        (errno.EDQUOT, "the disk of / is full ("),
        (errno.EROFS, "read-only"),
        (errno.ENAMETOOLONG, "too long (1 bytes)"),
        (errno.ENOTDIR, "a file is where the folder / was expected"),
        (errno.EMFILE, "too many files are open (at most "),
    ],
)
def test_an_errno_is_told_by_what_it_means_for_the_path(number: int, said: str) -> None:
    explained = disk.explain(number, "/")
    assert explained is not None
    assert said in explained[0]
    assert explained[1].endswith(".")


def test_an_errno_that_is_not_of_a_disk_is_left_to_others() -> None:
    assert disk.explain(errno.EPERM, "/") is None
    assert disk.explain(None, "/") is None

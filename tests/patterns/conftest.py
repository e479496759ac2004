"""Patterns of notebooks: each run in a kernel, and its last cell once more by a worker."""

import pytest

from tests.patterns.notebooks import try_notebook


@pytest.fixture(scope="session")
def tried():
    """Run a notebook on both sides; see `try_notebook`."""
    return try_notebook

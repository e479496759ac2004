"""Captured scripts that are run: one process that forks for each, see `notebook`."""

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def small():
    """The module of small notebooks."""
    spec = importlib.util.spec_from_file_location("notebook", Path(__file__).with_name("notebook.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def notebook(small):
    """The class of small notebooks."""
    return small.Notebook


@pytest.fixture(scope="session")
def alone(small):
    """Runs a script by `python -I` in an empty folder; gives what it prints."""
    return small.run_alone

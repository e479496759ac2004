"""Captured scripts that are run: one process that forks for each, see `notebook`."""

import importlib.util
from pathlib import Path

import pytest

from tests.capture import notebook_fixtures


@pytest.fixture(scope="session")
def small():
    """Return the module of small notebooks."""
    spec = importlib.util.spec_from_file_location("notebook", Path(__file__).with_name("notebook.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def notebook(small):
    """Return the class of small notebooks."""
    return small.Notebook


@pytest.fixture(scope="session")
def alone(small):
    """Run a script by `python -I` in an empty folder; return what it prints."""
    return small.run_alone


unchanged_libraries = notebook_fixtures.unchanged_libraries
beside = notebook_fixtures.beside
loaded_modules = notebook_fixtures.loaded_modules
data_folder = notebook_fixtures.data_folder
module_folder = notebook_fixtures.module_folder
result_folder = notebook_fixtures.result_folder

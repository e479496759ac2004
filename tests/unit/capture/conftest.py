"""Small notebooks whose cells are captured; the scripts are run in `tests/capture`."""

import importlib.util
from pathlib import Path

import pytest

from tests.capture import notebook_fixtures

NOTEBOOK = Path(__file__).parents[2] / "capture" / "notebook.py"


@pytest.fixture(scope="session")
def notebook():
    """Return the class of small notebooks."""
    spec = importlib.util.spec_from_file_location("notebook", NOTEBOOK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Notebook


unchanged_libraries = notebook_fixtures.unchanged_libraries
beside = notebook_fixtures.beside
loaded_modules = notebook_fixtures.loaded_modules
data_folder = notebook_fixtures.data_folder
module_folder = notebook_fixtures.module_folder
result_folder = notebook_fixtures.result_folder

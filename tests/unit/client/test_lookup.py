"""Which notebook this is, as the front ends tell it."""

import sys
import types
from pathlib import Path

import pytest

from jupyter_autotrain.client import lookup
from jupyter_autotrain.core.spec import Origin


@pytest.mark.parametrize(
    ("names", "environ", "path"),
    [
        ({}, {"JPY_SESSION_NAME": "/home/ada/a.ipynb"}, "/home/ada/a.ipynb"),
        ({}, {"JPY_SESSION_NAME": "a.ipynb"}, "/kernel/a.ipynb"),
        ({"__session__": "/home/ada/b.ipynb"}, {"JPY_SESSION_NAME": "/home/ada/a.ipynb"}, "/home/ada/b.ipynb"),
        ({"__vsc_ipynb_file__": "/home/ada/c.ipynb"}, {}, "/home/ada/c.ipynb"),
        ({}, {}, ""),
    ],
)
def test_a_notebook_is_known_by_its_path_where_the_front_end_tells_it(names, environ, path):
    found = lookup.of_notebook(names, environ, "/kernel")
    assert found.notebook == path
    assert found.session == lookup.of_notebook({}, {}, "/elsewhere").session != ""


def test_a_shell_is_of_a_notebook_only_when_a_notebook_started_it():
    assert lookup.of_shell({}) is None
    assert lookup.of_shell({"JPY_SESSION_NAME": "a.ipynb"}) is None
    assert lookup.of_shell({"JPY_SESSION_NAME": "/home/ada/a.ipynb"}) == Origin("/home/ada/a.ipynb")


@pytest.fixture
def main(monkeypatch):
    module = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    return module


def test_a_script_is_of_the_notebook_that_started_it_and_else_of_none(main, monkeypatch):
    assert lookup.here() is None
    monkeypatch.setenv("JPY_SESSION_NAME", "/home/ada/a.ipynb")
    assert lookup.here() == Origin("/home/ada/a.ipynb")


def test_an_interactive_session_is_known_by_itself(main, tmp_path):
    main.get_ipython = lambda: types.SimpleNamespace(starting_dir=str(tmp_path))
    found = lookup.here()
    assert found.notebook == ""
    assert found.session
    main.__session__ = "b.ipynb"
    assert lookup.here() == Origin(str(Path(tmp_path, "b.ipynb")), found.session)

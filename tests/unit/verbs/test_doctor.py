"""Tests of what `doctor` says of the extension of JupyterLab and of the home."""

import json
import os

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.store import Store
from jupyter_autotrain.verbs.doctor import _check_sidebar, _check_store

EXTENSION = "jupyter-autotrain"


def extension(root, wanted):
    """Return a folder of extensions of JupyterLab in which ours wants a version of JupyterLab's application."""
    folder = root / "labextensions" / EXTENSION
    folder.mkdir(parents=True)
    described = {
        "name": EXTENSION,
        "version": "0.1.0",
        "dependencies": {"@jupyterlab/application": wanted},
        "jupyterlab": {"extension": True, "_build": {"load": "static/remoteEntry.js", "extension": "./extension"}},
    }
    (folder / "package.json").write_text(json.dumps(described))
    return {**os.environ, "JUPYTER_PATH": str(root)}


def test_an_extension_that_this_jupyterlab_takes_is_well(tmp_path):
    [found] = _check_sidebar(extension(tmp_path, "^4.2.0"))
    assert found.good
    assert found.text.endswith("loads the extension")


def test_an_extension_that_jupyterlab_marks_as_incompatible_needs_attention(tmp_path):
    [found] = _check_sidebar(extension(tmp_path, "^3.6.0"))
    assert not found.good
    assert "does not load the extension" in found.text
    assert "jupyter labextension list" in found.action


def test_the_row_of_the_home_says_where_it_lies(tmp_path):
    Store.open(Home(tmp_path / "home")).close()
    [home] = [found for found in _check_store(Home(tmp_path / "home")) if found.name == "home"]
    assert home.good
    assert str(tmp_path / "home") in home.text

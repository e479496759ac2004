"""Views load no IPython, so a command line and a server can draw them, too."""

from __future__ import annotations

import subprocess
import sys

IMPORT_ALL = """
import importlib, pkgutil, sys
import jupyter_autotrain.views as views
modules = [importlib.import_module(found.name) for found in pkgutil.iter_modules(views.__path__, f"{views.__name__}.")]
print(len(modules), *sorted({"IPython", "anywidget", "ipywidgets"} & set(sys.modules)))
"""
SUMMARY = """
import sys
import jupyter_autotrain.views.summary, jupyter_autotrain.views.json_objects
print("numpy" in sys.modules)
"""


def fresh(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.split()


def test_importing_every_module_of_views_loads_no_ipython() -> None:
    count, *loaded = fresh(IMPORT_ALL)
    assert int(count) > 5
    assert loaded == []


def test_the_texts_of_an_experiment_need_no_numpy() -> None:
    assert fresh(SUMMARY) == ["False"]

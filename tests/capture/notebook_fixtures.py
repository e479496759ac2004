"""Fixtures of tests that capture cells, here and in `tests/unit/capture`: folders of notebooks, modules beside them."""

import fractions
import importlib
import json
import os
import string
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

DATA_FILES = (
    "data/a.csv",
    "data/b.csv",
    "data/deep/c.csv",
    "imgs/cat/1.png",
    "imgs/dog/2.png",
    "top.csv",
    "vocab.txt",
)
PATCHED = (fractions.Fraction, string, textwrap, textwrap.TextWrapper)


@pytest.fixture
def unchanged_libraries():
    """Attributes that a test sets on these libraries are as before afterwards."""
    before = [dict(vars(owner)) for owner in PATCHED]
    yield
    for owner, attributes in zip(PATCHED, before, strict=True):
        for name in set(vars(owner)) - set(attributes):
            delattr(owner, name)
        for name, value in attributes.items():
            if vars(owner)[name] is not value:
                setattr(owner, name, value)


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """Write a module beside the notebook."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, text):
        tmp_path.joinpath(f"{name}.py").write_text(text)
        return tmp_path

    return write


@pytest.fixture
def loaded_modules():
    """Modules that a test loads are loaded again by the next one."""
    before = set(sys.modules)
    folders = []
    yield folders
    for name in set(sys.modules) - before:
        path = str(getattr(sys.modules[name], "__file__", ""))
        if path.startswith(tuple(map(str, folders))):
            del sys.modules[name]


@pytest.fixture
def data_folder(tmp_path, monkeypatch, loaded_modules):
    """Return a notebook's folder with data in it."""
    place = tmp_path / "notebook"
    for name in DATA_FILES:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("x,y\n1,2\n")
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "far.csv").write_text("x\n1\n")
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(str(place))
    loaded_modules.append(place)
    return place


@pytest.fixture
def module_folder(tmp_path, monkeypatch, loaded_modules):
    """Return a notebook's folder: on `sys.path`, and the current one, as in a kernel."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    loaded_modules.append(tmp_path)
    return tmp_path


@pytest.fixture
def result_folder(tmp_path, monkeypatch):
    """Return a notebook's folder with folders for what is written, and some data."""
    place = tmp_path / "notebook"
    for name in ("models/old", "figures", "logs/run1", "data", "runs/fold0", "runs/fold1"):
        (place / name).mkdir(parents=True)
    (place / "models" / "old.pt").write_text("old")
    (place / "data" / "a.csv").write_text("x\n")
    monkeypatch.chdir(place)
    return place


def write_files(folder, **files):
    """Write files whose names are given as keywords: `data__a_txt` is `data/a.txt`."""
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py").replace("_txt", ".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    importlib.invalidate_caches()


def differences_of(book, code, **options):
    """Kind, text and origin of what a trial of a cell does not have as the notebook has it."""
    return [(one.kind, one.text, one.origin) for one in book.capture(code, **options).differences]


CAPTURES = """
import json, sys
from tests.capture.notebook import Notebook
cells, code, options = json.loads(sys.argv[1])
print(json.dumps([one.text for one in Notebook(*cells).capture(code, **options).differences]))
"""


def told_with_hash_seed(hash_seed, cells, code, **options):
    """Return what is told of a cell in a process that was started with this `PYTHONHASHSEED`."""
    command = [sys.executable, "-c", CAPTURES, json.dumps([cells, code, options])]
    root = Path(__file__).parents[2]
    environ = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return json.loads(subprocess.run(command, cwd=root, env=environ, capture_output=True, check=True).stdout)

"""Which files travel: those that calls open, however their paths are put together; never those that some text names."""

# Cells are written on one line each, however long, so that they read as a list.
# ruff: noqa: E501

import os
import sys
from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A notebook's folder with data in it."""
    place = tmp_path / "notebook"
    for name in (
        "data/a.csv",
        "data/b.csv",
        "data/deep/c.csv",
        "imgs/cat/1.png",
        "imgs/dog/2.png",
        "top.csv",
        "vocab.txt",
    ):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("x,y\n1,2\n")
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "far.csv").write_text("x\n1\n")
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(str(place))
    before = set(sys.modules)
    yield place
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(place)):
            del sys.modules[name]


def test_a_data_set_that_was_made_earlier_brings_the_files_it_opens_later(notebook, folder):
    book = notebook(
        "import os\nclass Images:\n    def __init__(self, root):\n        self.root, self.names = root, os.listdir(root)\n"
        "    def __getitem__(self, i):\n        return open(os.path.join(self.root, self.names[i])).read()",
        "ds = Images('data/deep')",
        cwd=folder,
    )
    assert set(book.capture("print(ds[0])").files) == {"data/deep/c.csv"}
    assert book.elsewhere("print(ds[0])") == "x,y\n1,2\n\n"


def test_files_that_modules_beside_the_notebook_open_travel(notebook, folder):
    (folder / "helpers.py").write_text(
        "import os\nfrom settings import ROOT\nfrom pathlib import Path\nHERE = Path(__file__).parent\n"
        "def words():\n    with open(HERE / 'vocab.txt') as f: return f.read()\n"
        "def table(name):\n    with open(os.path.join(ROOT, name + '.csv')) as f: return f.read()\n"
        "def unused(): return open('top.csv')\n"
        "if __name__ == '__main__':\n    open('data/b.csv')\n"
    )
    (folder / "settings.py").write_text("ROOT = 'data'\n")
    book = notebook("from helpers import table, words", cwd=folder)
    modules = {"helpers.py", "settings.py"}
    assert set(book.capture("table('a')").files) - modules == {"data/a.csv"}
    assert set(book.capture("words()").files) - modules == {"vocab.txt"}
    assert book.both("print(table('a'))\nprint(words())").startswith("x,y")
    book = notebook("import helpers as h", cwd=folder)
    assert set(book.capture("h.table('a')").files) - modules == {"data/a.csv"}
    assert book.row("h.table('a')", "data/a.csv").origin == "helpers.py, line 8"


def test_a_package_without_init_travels_by_its_code_alone(notebook, folder):
    (folder / "src" / "nets").mkdir(parents=True)
    (folder / "src" / "nets" / "small.py").write_text("WIDTH = 3")
    (folder / "src" / "weights.bin").write_text("big")
    book = notebook("from src.nets.small import WIDTH", cwd=folder)
    assert book.both("print(WIDTH)") == "3\n"
    code = "import src.nets.small as small\nprint(small.WIDTH)"
    assert set(book.capture(code).files) == {"src/nets/small.py"}
    assert book.both(code) == "3\n"


def test_a_module_that_is_imported_by_a_call_travels(notebook, folder):
    (folder / "lazily.py").write_text("V = 8")
    code = "import importlib\nprint(importlib.import_module('lazily').V)"
    assert set(notebook(cwd=folder).capture(code).files) == {"lazily.py"}
    assert notebook(cwd=folder).both(code) == "8\n"


def test_modules_of_a_folder_that_the_cell_puts_on_the_path_travel(notebook, folder):
    (folder / "lib").mkdir()
    (folder / "lib" / "in_lib.py").write_text("V = 5")
    (folder.parent / "beside" / "outside.py").write_text("V = 6")
    book = notebook("LIB = 'lib'", cwd=folder)
    code = "import sys\nsys.path.append(LIB)\nsys.path.insert(0, '../beside')\nimport in_lib, outside\nprint(in_lib.V + outside.V)"
    assert set(book.capture(code).files) == {"in_lib.py", "outside.py"}
    assert book.elsewhere(code) == "11\n"


def test_the_advice_for_a_path_out_of_the_folder_works(notebook, folder):
    (folder / "beside").symlink_to("../beside")
    book = notebook(cwd=folder)
    assert set(book.capture("open('beside/far.csv')", ship=["beside"]).files) == {"beside/far.csv"}
    assert book.both("from pathlib import Path\nprint(Path('beside/far.csv').read_text())") == "x\n1\n\n"


def test_programs_that_are_run_with_files_of_the_folder_are_told(notebook, folder):
    book = notebook(cwd=folder)
    for code in ("import subprocess\nsubprocess.run(['cat', 'top.csv'])", "import os\nos.system('cat top.csv')"):
        captured = book.capture(code)
        assert captured.files == {}
        assert "runs a program with top.csv" in captured.differences[0].text
    assert book.capture("import os\nos.system('cat top.csv')", ship=["top.csv"]).differences == ()


def test_a_notebook_that_has_changed_its_folder_sends_files_by_the_new_one(notebook, folder):
    book = notebook("import os\nos.chdir('data')", cwd=folder)
    book.cwd = Path.cwd()
    assert set(book.capture("open('a.csv')").files) == {"a.csv"}
    assert book.both("from pathlib import Path\nprint(Path('a.csv').read_text())") == "x,y\n1,2\n\n"
    os.chdir(folder)

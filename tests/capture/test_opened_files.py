"""Which files travel: those that calls open, however their paths are put together; never those that some text names."""

# Cells are written on one line each, however long, so that they read as a list.
# ruff: noqa: E501

import os
from pathlib import Path


def test_a_data_set_that_was_made_earlier_is_told_with_the_line_that_sends_its_files(notebook, data_folder):
    book = notebook(
        "import os\nclass Images:\n    def __init__(self, root):\n        self.root, self.names = root, os.listdir(root)\n"
        "    def __getitem__(self, i):\n        return open(os.path.join(self.root, self.names[i])).read()",
        "ds = Images('data/deep')",
        cwd=data_folder,
    )
    told = [one.text for one in book.capture("print(ds[0])").differences]
    assert "what lies in data/deep/, which ds names: `ship: [data/deep]` sends it" in told
    assert book.elsewhere("print(ds[0])", ship=["data/deep"]) == "x,y\n1,2\n\n"


def test_files_that_modules_beside_the_notebook_open_travel(notebook, data_folder):
    (data_folder / "helpers.py").write_text(
        "import os\nfrom pathlib import Path\nROOT = 'data'\nHERE = Path(__file__).parent\n"
        "def words():\n    with open(HERE / 'vocab.txt') as f: return f.read()\n"
        "def table(name):\n    with open(os.path.join(ROOT, name + '.csv')) as f: return f.read()\n"
    )
    book = notebook("from helpers import table, words", cwd=data_folder)
    assert set(book.capture("table('a')").files) == {"data/a.csv", "data/b.csv", "helpers.py", "vocab.txt"}
    assert book.both("print(table('a'))\nprint(words())").startswith("x,y")
    assert book.row("table('a')", "data/a.csv").origin == "helpers.py, line 8"


def test_a_package_without_init_travels_by_its_code_alone(notebook, data_folder):
    (data_folder / "src" / "nets").mkdir(parents=True)
    (data_folder / "src" / "nets" / "small.py").write_text("WIDTH = 3")
    (data_folder / "src" / "weights.bin").write_text("big")
    book = notebook("from src.nets.small import WIDTH", cwd=data_folder)
    assert book.both("print(WIDTH)") == "3\n"
    code = "import src.nets.small as small\nprint(small.WIDTH)"
    assert set(book.capture(code).files) == {"src/nets/small.py"}
    assert book.both(code) == "3\n"


def test_a_module_that_is_imported_by_a_call_travels(notebook, data_folder):
    (data_folder / "lazily.py").write_text("V = 8")
    code = "import importlib\nprint(importlib.import_module('lazily').V)"
    assert set(notebook(cwd=data_folder).capture(code).files) == {"lazily.py"}
    assert notebook(cwd=data_folder).both(code) == "8\n"


def test_modules_of_a_folder_that_the_cell_puts_on_the_path_travel(notebook, data_folder):
    (data_folder / "lib").mkdir()
    (data_folder / "lib" / "in_lib.py").write_text("V = 5")
    (data_folder.parent / "beside" / "outside.py").write_text("V = 6")
    book = notebook("LIB = 'lib'", cwd=data_folder)
    code = "import sys\nsys.path.append(LIB)\nsys.path.insert(0, '../beside')\nimport in_lib, outside\nprint(in_lib.V + outside.V)"
    assert set(book.capture(code).files) == {"in_lib.py", "outside.py"}
    assert book.elsewhere(code) == "11\n"


def test_the_advice_for_a_path_out_of_the_folder_works(notebook, data_folder):
    (data_folder / "beside").symlink_to("../beside")
    book = notebook(cwd=data_folder)
    assert set(book.capture("open('beside/far.csv')", ship=["beside"]).files) == {"beside/far.csv"}
    assert book.both("from pathlib import Path\nprint(Path('beside/far.csv').read_text())") == "x\n1\n\n"


def test_programs_that_are_run_with_files_of_the_folder_find_them(notebook, data_folder):
    book = notebook(cwd=data_folder)
    for code in ("import subprocess\nsubprocess.run(['cat', 'top.csv'])", "import os\nos.system('cat top.csv')"):
        assert set(book.capture(code).files) == {"top.csv"}


def test_a_notebook_that_has_changed_its_folder_sends_files_by_the_new_one(notebook, data_folder):
    book = notebook("import os\nos.chdir('data')", cwd=data_folder)
    book.cwd = Path.cwd()
    assert set(book.capture("open('a.csv')").files) == {"a.csv"}
    assert book.both("from pathlib import Path\nprint(Path('a.csv').read_text())") == "x,y\n1,2\n\n"
    os.chdir(data_folder)

"""Files that travel: modules beside the notebook, files its strings name, `ship:` patterns, ignore files, limits."""

# Cells are written on one line each, however long, so that they read as a list.

import sys

import pytest

from jupyter_autotrain.capture import CaptureLimits
from jupyter_autotrain.errors import ShipError
from tests.capture.notebook_fixtures import write_files


def test_a_module_imported_before_the_notebook_moved_on_still_travels(notebook, module_folder):
    write_files(module_folder, early_py="V = 4")
    book = notebook("import early", cwd=module_folder)
    (module_folder / "elsewhere").mkdir()
    book.cwd = module_folder / "elsewhere"
    assert set(book.capture("print(early.V)").files) == {"early.py"}


def test_installed_modules_and_this_package_stay(notebook, module_folder):
    code = "import numpy, json, jupyter_autotrain, pytest\nprint(1)"
    assert notebook(cwd=module_folder).capture(code).files == {}


def test_ship_patterns_take_files_folders_and_stars(notebook, module_folder):
    write_files(module_folder, data__x_txt="", data__deep__y_txt="", top_txt="", data__skip_py="")
    book = notebook(cwd=module_folder)
    assert set(book.capture("1", ship=["**/*.txt"]).files) == {"data/x.txt", "data/deep/y.txt", "top.txt"}
    assert set(book.capture("1", ship=["data"]).files) == {"data/x.txt", "data/deep/y.txt", "data/skip.py"}
    (module_folder / ".autotrainignore").write_text("deep/\n")
    (module_folder / ".nniignore").write_text("*.py\n")
    assert set(book.capture("1", ship=["data"]).files) == {"data/x.txt"}


@pytest.mark.parametrize(
    ("pattern", "says"),
    [("tpo.txt", "Did you mean 'top.txt'?"), ("../x", "not below"), ("/etc", "not below"), ("secret.txt", "leave out")],
)
def test_a_pattern_that_ships_nothing_is_an_error(notebook, module_folder, pattern, says):
    write_files(module_folder, top_txt="", secret_txt="", _autotrainignore="")
    (module_folder / ".autotrainignore").write_text("secret*")
    with pytest.raises(ShipError) as caught:
        notebook(cwd=module_folder).capture("1", ship=[pattern])
    assert says in str(caught.value)


def test_too_many_or_too_big_files_come_with_a_size_tree(notebook, module_folder):
    write_files(module_folder, **{f"data__f{i}_txt": "x" * 1000 for i in range(30)}, data__big__b_txt="x" * 50_000)
    book = notebook(cwd=module_folder)
    with pytest.raises(ShipError) as many:
        book.capture("1", ship=["data"], limits=CaptureLimits(files=10))
    with pytest.raises(ShipError) as big:
        book.capture("1", ship=["data"], limits=CaptureLimits(file_bytes=1000))
    assert "31 files, 80 kB" in str(many.value)
    assert "50 kB  data/big/" in str(big.value)
    assert "80 kB  data/ (31 files)" in str(big.value)
    assert "in 30 more" in str(big.value)
    assert max(len(str(e.value).splitlines()) for e in (many, big)) <= 6


@pytest.fixture
def outside(tmp_path_factory):
    place = tmp_path_factory.mktemp("outside")
    (place / "private.txt").write_text("mine")
    return place


def test_a_pattern_follows_no_link_out_of_the_folder(notebook, module_folder, outside):
    write_files(module_folder, data__a_txt="1", own_txt="2")
    (module_folder / "linked").symlink_to(outside)
    (module_folder / "data" / "private.txt").symlink_to(outside / "private.txt")
    (module_folder / "inner.txt").symlink_to(module_folder / "data" / "a.txt")
    for pattern, expected in {
        "**/*": {"data/a.txt", "own.txt", "inner.txt"},
        "*/*.txt": {"data/a.txt"},
        "data": {"data/a.txt"},
    }.items():
        assert set(notebook(cwd=module_folder).capture("x = 1", ship=[pattern]).files) == expected
    with pytest.raises(ShipError, match="links out of the folder"):
        notebook(cwd=module_folder).capture("x = 1", ship=["link*"])


def test_a_link_that_is_named_itself_is_followed(notebook, module_folder, outside):
    (module_folder / "linked").symlink_to(outside)
    (module_folder / "one.txt").symlink_to(outside / "private.txt")
    (outside / "away.txt").symlink_to("/etc/hostname")
    captured = notebook(cwd=module_folder).capture("x = 1", ship=["linked", "one.txt"])
    assert set(captured.files) == {"linked/private.txt", "one.txt"}


@pytest.mark.parametrize("pattern", ["**.csv", "a**", "x\0y", "a" * 5000, "[", "[z-a]", "**/**/**/*.csv", "***"])
def test_a_pattern_that_is_none_is_told_as_such(notebook, module_folder, pattern):
    with pytest.raises(ShipError):
        notebook(cwd=module_folder).capture("x = 1", ship=[pattern])


def test_a_faulty_line_of_an_ignore_file_ignores_nothing(notebook, module_folder):
    write_files(module_folder, a_txt="1")
    (module_folder / ".autotrainignore").write_text("[z-a]\n[\n")
    assert set(notebook(cwd=module_folder).capture("x = 1", ship=["*.txt"]).files) == {"a.txt"}


def lay_out(module_folder):
    write_files(module_folder, data__a_txt="a", data__b_txt="b", data__deep__c_txt="c", root_txt="r")


@pytest.mark.parametrize(
    ("code", "files"),
    [
        ('from pathlib import Path\nprint((Path("data") / "a.txt").read_text())', {"data/a.txt"}),
        ('from pathlib import Path\nprint((Path("data") / "deep" / "c.txt").read_text())', {"data/deep/c.txt"}),
        ('import pathlib\nprint(pathlib.Path("data", "a.txt").read_text())', {"data/a.txt"}),
        ('from pathlib import Path\nprint(Path("data").joinpath("b.txt").read_text())', {"data/b.txt"}),
        ('import os\nprint(open(os.path.join("data", "a.txt")).read())', {"data/a.txt"}),
        ('from os.path import join\nprint(open(join("data", "deep", "c.txt")).read())', {"data/deep/c.txt"}),
        ('name = "a"\nprint(open(f"data/{name}.txt").read())', {"data/a.txt"}),
        ('print(open("data" + "/" + "a.txt").read())', {"data/a.txt"}),
        ('print(open("./data/a.txt").read())', {"data/a.txt"}),
        ('from pathlib import Path\nprint((Path.cwd() / "data" / "a.txt").read_text())', {"data/a.txt"}),
        (
            'from pathlib import Path\nfor n in ("a", "b"):\n    print(Path(f"data/{n}.txt").read_text())',
            {"data/a.txt", "data/b.txt"},
        ),
    ],
)
def test_paths_put_together_from_literals_are_seen_as_files(notebook, module_folder, code, files):
    lay_out(module_folder)
    captured = notebook(cwd=module_folder).capture(code)
    assert set(captured.files) == files


def test_a_path_that_is_written_to_is_not_sent(notebook, module_folder):
    lay_out(module_folder)
    for code in (
        '(Path("data") / "a.txt").write_text("x")',
        'Path("root.txt").open("w")',
        'open(os.path.join("data", "a.txt"), "w")',
        'open(Path("data") / "a.txt", mode="x")',
        'Path("data").mkdir(exist_ok=True)',
    ):
        assert notebook(cwd=module_folder).capture(f"import os\nfrom pathlib import Path\n{code}").files == {}, code
    for code in ('open("root.txt", "r")', 'Path("root.txt").open()', 'Path("root.txt").open("rb")'):
        assert set(notebook(cwd=module_folder).capture(f"from pathlib import Path\n{code}").files) == {"root.txt"}, code


def test_a_path_above_the_folder_or_of_endless_parts_is_left_alone(notebook, module_folder):
    code = (
        'p = "a"\n'
        + "p = p + p\n" * 40
        + "q = "
        + " + ".join(["p"] * 200)
        + "\n"
        + 'from pathlib import Path\nx = Path("..") / "x.csv"\ny = Path("/") / "etc"'
    )
    assert notebook(cwd=module_folder).capture(code).files == {}


def test_a_package_installed_into_a_folder_of_pythonpath_is_an_import(
    notebook, module_folder, tmp_path_factory, monkeypatch
):
    target = tmp_path_factory.mktemp("target")
    write_files(target, vendored__init_py="V = 1", vendored__data_txt="x", lone_py="W = 2")
    (target / "vendored" / "init.py").rename(target / "vendored" / "__init__.py")
    monkeypatch.syspath_prepend(str(target))
    code = "import vendored, lone\nprint(vendored.V, lone.W)"
    # The user's own modules travel, also from a folder of their own ...
    assert set(notebook(cwd=module_folder).capture(code).files) == {
        "lone.py",
        "vendored/__init__.py",
        "vendored/data.txt",
    }
    (target / "vendored-1.0.dist-info").mkdir()
    # ... and what pip installed there is found there by trials too.
    assert notebook(cwd=module_folder).capture(code).files == {}
    for name in ("vendored", "lone"):
        sys.modules.pop(name, None)

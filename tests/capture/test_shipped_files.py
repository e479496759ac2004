"""Files that travel: modules beside the notebook, files its strings name, `ship:` patterns, ignore files, limits."""

# Cells are written on one line each, however long, so that they read as a list.
# ruff: noqa: E501

from tests.capture.notebook_fixtures import write_files


def test_modules_beside_the_notebook_travel_with_what_they_import(notebook, module_folder):
    write_files(
        module_folder,
        helpers_py="import math\nfrom pkg.deep import tool\nimport other\ndef go(): return tool() + other.ONE",
        other_py="ONE = 1",
        pkg__init_py="",
        pkg__deep_py="from .near import two\ndef tool(): return two()",
        pkg__near_py="def two(): return 2",
        unused_py="",
    )
    (module_folder / "pkg" / "init.py").rename(module_folder / "pkg" / "__init__.py")
    book = notebook("from helpers import go", "import helpers as h", cwd=module_folder)
    captured = book.capture("print(go(), h.go())")
    assert set(captured.files) == {"helpers.py", "other.py", "pkg/__init__.py", "pkg/deep.py", "pkg/near.py"}
    assert book.both("print(go(), h.go())") == "3 3\n"


def test_a_module_that_only_data_refers_to_travels_too(notebook, module_folder):
    write_files(module_folder, shapes_py="class Circle:\n    r = 2")
    book = notebook("import shapes\nc = shapes.Circle()", cwd=module_folder)
    assert set(book.capture("print(c.r)").files) == {"shapes.py"}
    assert book.both("print(c.r)") == "2\n"


def test_a_module_imported_inside_a_function_travels(notebook, module_folder):
    write_files(module_folder, lazy_py="V = 9")
    assert notebook("def f():\n    import lazy\n    return lazy.V", cwd=module_folder).both("print(f())") == "9\n"


def test_files_that_strings_name_travel(notebook, module_folder):
    write_files(module_folder, data__a_txt="a", data__b_txt="b", conf_txt="c", out_txt="old", doc_txt="d")
    book = notebook("PATH = 'conf.txt'", "def load(): return open('conf.txt').read()", cwd=module_folder)
    code = '"""doc.txt"""\nprint(load(), open("out.txt", "w").write("x"))\nimport os\nprint(sorted(os.listdir("data")), "data/none.txt", "..", "/etc/passwd")'
    assert set(book.capture(code).files) == {"conf.txt", "data/a.txt", "data/b.txt"}
    assert book.elsewhere(code) == "c 1\n['a.txt', 'b.txt'] data/none.txt .. /etc/passwd\n"
    rows = [row.name for row in book.capture(code).captured if row.how == "file"]
    assert rows == ["conf.txt", "data/a.txt", "data/b.txt"]


def lay_out(module_folder):
    write_files(module_folder, data__a_txt="a", data__b_txt="b", data__deep__c_txt="c", root_txt="r")


def test_paths_of_the_cells_variables_and_of_earlier_cells_are_seen(notebook, module_folder):
    lay_out(module_folder)
    book = notebook(
        "from pathlib import Path\nimport os\nHERE = Path('data') / 'deep'\nNAME = 'data/a.txt'", cwd=module_folder
    )
    assert "data/deep/c.txt" in book.capture('print((HERE / "c.txt").read_text())').files
    assert set(book.capture("print(open(NAME).read())").files) == {"data/a.txt"}
    assert book.elsewhere("print(open(NAME).read())") == "a\n"
    code = 'root = "data"\nprint(open(os.path.join(root, "a.txt")).read())'
    assert "data/a.txt" in book.capture(code).files


def test_a_path_beside_the_codes_own_file_is_seen_and_found(notebook, module_folder, tmp_path):
    lay_out(module_folder)
    for place in ("Path(__file__).parent", "Path(__file__).resolve().parent", "Path(os.path.dirname(__file__))"):
        code = f'import os\nfrom pathlib import Path\nprint(({place} / "data" / "a.txt").read_text(), f"{{__name__}}")'
        assert set(notebook(cwd=module_folder).capture(code).files) == {"data/a.txt"}, place
        assert notebook(cwd=module_folder).elsewhere(code) == "a __main__\n"

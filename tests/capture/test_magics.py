"""IPython's own syntax in a cell: what only shows or measures is left out with a note, the rest is refused with what to do instead."""

# Cells are written on one line each, however long, so that the cases read as a list.
# ruff: noqa: E501

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from jupyter_autotrain.capture.syntax.cells import python_tree
from jupyter_autotrain.errors import CaptureError


@pytest.fixture(scope="module")
def shell():
    config = Config()
    config.HistoryManager.enabled = False
    return InteractiveShell(config=config)


def refusal(notebook, cell, **options):
    with pytest.raises(CaptureError) as caught:
        notebook().capture(cell, **options)
    error = caught.value
    assert error.found
    assert error.expected
    assert error.action
    assert len(str(error).splitlines()) <= 6
    return str(error)


LEFT_OUT = [
    "%matplotlib inline", "%config InlineBackend.figure_format = 'retina'", "%load_ext autoreload", "%autoreload 2",
    "%reload_ext autoreload", "%timeit sum(range(10))", "%pip install -q torch", "%conda install numpy", "!pip install -q 'torch>=2'",
    "!python -m pip install torch", "!{sys.executable} -m pip install torch", "!sudo apt-get install -y graphviz", "!nvidia-smi", "!ls -la data | head -3",
    "!pwd; ls", "!pip install a && pip install b", "%env HOME", "%env", "%pwd", "%whos", "!!ls", "!export A=1", "!echo \"it's (open\"",
    "%load_ext tensorboard", "%tensorboard --logdir runs", "!pip install \\\n    torch",
]  # fmt: skip


@pytest.mark.parametrize("line", LEFT_OUT)
def test_a_line_that_only_shows_measures_or_installs_is_left_out_with_a_note(notebook, line):
    captured = notebook().capture(f"x = 1\n{line}\nprint(x)", first_line=5)
    first = line.partition("\n")[0]
    (note,) = captured.notes
    assert note.startswith(f"Line 6 is left out: `{first}` ")
    assert captured.source_map[-1] == f"this cell:{7 + line.count(chr(10))}"
    assert notebook().elsewhere(f"x = 1\n{line}\nprint(x)") == "1\n"


def test_a_timed_statement_runs_once_and_binds_its_names(notebook):
    cell = "%time y = [1, 2]\ndef f():\n    %time z = y + [3]\n    return z\nfor i in range(2):\n    %time print(f())\nw = %time sum(y)\nprint(w)"
    assert notebook().elsewhere(cell) == "[1, 2, 3]\n[1, 2, 3]\n3\n"
    captured = notebook("k = 2").capture("%time r = k\nprint(r)")
    assert captured.notes == ("Line 1 runs as plain Python: `%time r = k`; the statement runs, without being timed.",)
    assert [row.name for row in captured.captured] == ["k"]


@pytest.mark.parametrize("cell", ["%%time\nprint(x)", "\n# a remark\n%%time\nprint(x)", "%%time \nprint(x)"])
def test_a_timed_cell_runs_without_being_timed(notebook, cell):
    book = notebook("x = 2")
    assert book.elsewhere(cell) == "2\n"
    assert book.capture(cell).script.splitlines()[-1] == "print(x)"
    assert "%%time" in book.capture(cell).notes[0]


def test_an_environment_variable_is_set_by_os(notebook):
    cell = "%env A_MODE=two words\n%env B_MODE 7\n%set_env C_MODE=1\nimport os\nprint(os.environ['A_MODE'], os.environ['B_MODE'], os.environ['C_MODE'])"
    assert notebook().elsewhere(cell) == "two words 7 1\n"


@pytest.mark.parametrize(
    ("cell", "word"),
    [
        ("x = 1\n!wget https://host/data.zip", "`ship:`"),
        ("x = 1\n!mkdir -p models", "subprocess.run"),
        ("x = 1\n!echo hi > out.txt", "`ship:`"),
        ("x = 1\n!ls | xargs rm", "`ship:`"),
        ("x = 1\nfiles = !ls data", "files = subprocess.run('ls data', shell=True"),
        ("x = 1\nfiles = %sx ls data", "files = subprocess.run('ls data', shell=True"),
        ("x = 1\nhome = %env HOME", 'home = os.environ["HOME"]'),
        ("x = 1\nt = %timeit -o x", "cell above"),
        ("x = 1\n%cd data", "remove the line"),
        ("x = 1\n%run lib/helpers.py", "`from lib.helpers import *`"),
        ("x = 1\nx?", "Remove the line"),
        ("x = 1\n?x", "Remove the line"),
        ("x = 1\nx.real??", "Remove the line"),
        ("x = 1\n%pylab inline", "import numpy as np"),
        ("x = 1\n%prun f()", "cProfile"),
        ("x = 1\n%env A=$HOME", "os.environ"),
        ("x = 1\n%unheard_of 3", "cell above"),
    ],
)
def test_a_line_that_does_something_is_refused_with_what_to_do_instead(notebook, cell, word):
    text = refusal(notebook, cell)
    assert f"line 2: {cell.partition(chr(10))[2]}" in text
    assert word in text


@pytest.mark.parametrize(
    ("magic", "word"),
    [
        ("%%capture out", "its log"), ("%%capture", "its log"), ("%%bash", "another program"), ("%%sh", "another program"),
        ("%%writefile a.py", "cell of its own above"), ("%%prun", "cProfile"), ("%%timeit", "keeps none"),
        ("%%html", "cell of their own"), ("%%unheard_of", "Remove %%unheard_of"), ("%%script python", "another program"),
    ],
)  # fmt: skip
def test_a_cell_magic_below_the_header_is_refused_in_its_own_words(notebook, magic, word):
    text = refusal(notebook, f"{magic}\necho 'hi there' | cat", first_line=3)
    assert f"line 3: {magic}" in text
    assert word in text


def test_all_lines_that_are_refused_are_named_at_once_and_others_are_not(notebook):
    text = refusal(notebook, "!pip install a\n!wget b\n%matplotlib inline\n%cd c\n!rm d\n!mv e f")
    assert "line 2: !wget b\nline 4: %cd c\nline 5: !rm d\nand 1 more" in text
    assert "pip" not in text


def test_text_and_operators_that_look_like_magics_are_python(notebook):
    cell = "text = '''\n%time x\n!ls\n%%bash\nwhat?\n'''\na = (17\n% b)\nprint(text, a, 7 \\\n% b)"
    assert notebook("b = 5").both(cell) == "\n%time x\n!ls\n%%bash\nwhat?\n 2 2\n"


def test_python_that_is_wrong_is_told_with_its_line_though_magics_stand_around(notebook):
    assert "Line 14 of this cell is not Python" in refusal_of(
        notebook, "%matplotlib inline\ntext = '''\n!ls\n'''\nx = = 1", 10
    )
    assert "Line 11 of this cell is not Python" in refusal_of(notebook, "x = 1\n%time y = = 2", 10)


def refusal_of(notebook, cell, first_line):
    with pytest.raises(CaptureError) as caught:
        notebook().capture(cell, first_line=first_line)
    return str(caught.value)


def test_calls_of_converted_notebooks_are_treated_as_the_magics_they_come_from(notebook):
    cell = (
        "get_ipython().run_line_magic('matplotlib', 'inline')\nget_ipython().system('pip install x')\nget_ipython().magic('load_ext autoreload')\n"
        "if True:\n    get_ipython().run_line_magic(\n        'time', 'y = 3')\nprint(y)"
    )
    captured = notebook().capture(cell)
    assert len(captured.notes) == 4
    assert captured.source_map[-1] == "this cell:7"
    assert notebook().elsewhere(cell) == "3\n"
    assert "line 1: x = get_ipython().getoutput('ls')" in refusal(notebook, "x = get_ipython().getoutput('ls')")
    assert "`ship:`" in refusal(notebook, "get_ipython().system('wget x')")
    assert "get_ipython: a part of IPython" in refusal(notebook, "print(get_ipython())")


def test_a_question_to_a_person_is_refused(notebook):
    assert "input: it waits for input" in refusal(notebook, "name = input('who?')")
    assert notebook("def input(text): return 'me'").both("print(input('who?'))") == "me\n"
    notebook().capture("def ask():\n    return input('who?')\nprint(1)")


@pytest.mark.parametrize(
    "source",
    [
        "%time x = f(1)", "x = %time f(1)", "for i in range(2):\n    %time x = i", "!ls", "%matplotlib inline",
        "y = '''\n!ls\n'''\n%timeit y", "if True:\n    !pip install \\\n        x\n    z = 1", "a?", "%env A=1",
    ],
)  # fmt: skip
def test_what_is_read_as_a_magic_is_one_to_ipython_too(shell, source):
    assert source != shell.transform_cell(source).rstrip("\n")
    tree, text = python_tree(source)
    assert text.count("\n") in {source.count("\n"), source.count("\n") + 1}
    assert tree.body


def test_names_bound_by_timed_statements_of_earlier_cells_come_from_there(notebook):
    book = notebook("%time total = sum(range(4))", "%%time\ndef f(): return total")
    assert book.both("print(f())") == "6\n"
    assert book.row("print(f())", "total").origin == "cell [1]"
    assert book.row("print(f())", "f").how == "source"

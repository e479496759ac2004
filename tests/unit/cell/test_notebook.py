"""Tests of what IPython keeps of earlier cells, and what its magics give, as a real shell has them."""

import ast
import atexit
import io
import sys
import types
from contextlib import redirect_stdout

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from jupyter_autotrain import capture, header
from jupyter_autotrain.cell import notebook
from jupyter_autotrain.errors import CaptureError


class Shell:
    def __init__(self, folder):
        config = Config()
        config.HistoryManager.hist_file = str(folder / "history.sqlite")
        self.shell = InteractiveShell(config=config)
        self.folder = folder

    def run(self, *cells):
        for cell in cells:
            with redirect_stdout(io.StringIO()):
                result = self.shell.run_cell(cell, store_history=True)
            assert result.success

    def capture(self, cell):
        parsed = header.parse_cell("", cell, header.HeaderContext(self.folder, {}, ()))
        return capture.capture(
            parsed.code,
            notebook.namespace(self.shell, parsed.code),
            notebook.executed_cells(self.shell),
            first_line=parsed.code_line,
            cwd=self.folder,
        )

    def trial(self, cell):
        """Return what the cell prints in a trial."""
        captured = self.capture(cell)
        capture.write_bundle(captured, self.folder / "bundle")
        script = capture.export_script(self.folder / "bundle", {})
        main = types.ModuleType("__main__")
        with redirect_stdout(io.StringIO()) as out, pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "__main__", main)
            exec(compile(script, "<trial>", "exec"), vars(main))
        return out.getvalue()


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(tmp_path)
    shell = Shell(tmp_path)
    yield shell
    shell.shell.history_manager.end_session()
    atexit.unregister(shell.shell.atexit_operations)  # each of them collects all garbage of this process
    InteractiveShell.clear_instance()


def test_the_last_results_and_those_of_a_number_travel_as_data(shell):
    shell.run("6 * 7", "[1, 2]", "'third'", "pass")
    assert shell.trial("print(_, __, ___, _1, _2)") == "third [1, 2] 42 42 [1, 2]\n"
    assert shell.trial("print(Out[1], Out[2], _oh[1])") == "42 [1, 2] 42\n"
    assert shell.trial("n = 1\nprint(Out[n], len(Out), In[1], _i1)") == "42 3 6 * 7 6 * 7\n"


def test_only_the_results_that_are_asked_for_travel(shell):
    shell.run("(n for n in [1])", "7", "x = 1")
    assert shell.trial("print(Out[2])") == "7\n"
    with pytest.raises(CaptureError, match=r"Out\[1\].*a generator"):
        shell.capture("print(len(Out))")


def test_a_result_and_a_variable_that_are_one_object_stay_one(shell):
    shell.run("rows = [1]\nrows")
    assert shell.trial("rows.append(2); print(_, Out[1], _ is rows)") == "[1, 2] [1, 2] True\n"


def test_a_function_shown_by_its_cell_keeps_its_own_name(shell):
    shell.run("def f(x): return x + 1\nf", "g = lambda x: f(x)\ng", "steps = [f, g]")
    assert shell.trial("print(g(1), steps[0] is f, steps[1] is g)") == "2 True True\n"


def test_lines_of_a_shell_and_values_of_magics_travel_as_data(shell):
    shell.run("files = !echo one two; echo three", "more = %sx echo four", "place = %pwd")
    printed = shell.trial("print(list(files), files.n, files.fields(0), files.grep('thr'), more, len(place) > 0)")
    assert printed == "['one two', 'three'] one two\nthree ['one', 'three'] ['three'] ['four'] True\n"
    assert {row.name: row.origin for row in shell.capture("print(files, more)").captured} == {
        "files": "cell [1]",
        "more": "cell [2]",
    }


def test_a_timed_cell_of_a_real_shell_trains_the_same(shell):
    shell.run("k = 2", "%time total = k + 1", "%%time\ndef f(): return total")
    cell = "objective: maximize x\n---\n%%time\n%matplotlib inline\n%time y = f()\nprint(y)\nreport(x=y)"
    assert shell.trial(cell) == "3\nstep 0: x=3\n"
    assert len(shell.capture(cell).notes) == 3
    assert shell.trial("%%time\nprint(f())") == "3\n"


def test_the_notebooks_own_names_are_seen_in_a_real_shell(shell):
    shell.run("params = {'depth': 3}", "display = print")
    assert shell.trial("display(params)") == "{'depth': 3}\n"
    assert [one.kind for one in shell.capture("display(params)").differences] == ["name taken"] * 2
    assert shell.capture("exit()").script == "exit()\n"


def test_a_function_with_a_magic_is_refused_in_the_right_words(shell):
    shell.run("def f(x):\n    %timeit -n1 -r1 x\n    return x", "def g():\n    !mkdir -p models")
    with pytest.raises(CaptureError, match=r"f \(cell \[1\]\): a function with IPython's own syntax \(% or !\)"):
        shell.capture("f(2)")
    with pytest.raises(CaptureError, match=r"g .*write these lines as plain Python"):
        shell.capture("g()")


def test_a_variable_of_the_environment_set_by_a_magic_is_set_in_the_trial(shell, monkeypatch):
    monkeypatch.setenv("AUTOTRAIN_MODE", "slow")
    shell.run("%env AUTOTRAIN_MODE=fast")
    monkeypatch.setenv("AUTOTRAIN_MODE", "fast")
    cell = "import os\nprint(os.environ['AUTOTRAIN_MODE'])"
    assert "fast" in shell.capture(cell).script
    assert shell.trial(cell) == "fast\n"


def test_a_cell_that_is_timed_around_the_experiment_is_read_alike(shell):
    shell.shell.run_line_magic("load_ext", "jupyter_autotrain")
    with redirect_stdout(io.StringIO()) as out:
        result = shell.shell.run_cell("%%time\n%%autotrain --dry-run\n%%time\nx = 1\nprint(x)", store_history=True)
    assert result.success
    assert "Line 2 is left out: `%%time`" in out.getvalue()
    shell.shell.run_line_magic("unload_ext", "jupyter_autotrain")


def test_names_that_ipython_has_put_there_do_not_travel_unasked(shell):
    shell.run("x = 1")
    assert [row.name for row in shell.capture("print(x)").captured] == ["x"]
    with pytest.raises(CaptureError, match="get_ipython"):
        shell.capture("print(get_ipython().user_ns)")
    assert ast.parse(shell.capture("print(quit, open)").script)

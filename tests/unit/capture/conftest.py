"""A small notebook: cells executed in one namespace, as IPython does, without IPython."""

import ast
import asyncio
import inspect
import io
import linecache
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from jupyter_autotrain import capture
from jupyter_autotrain.capture.cells import python_tree
from jupyter_autotrain.capture.history import compiler_flags, futures_in


class Notebook:
    """Executes cells in one namespace called `__main__` and captures further ones."""

    def __init__(self, *sources, cwd="."):
        self.namespace = {"__name__": "__main__", "__builtins__": __builtins__}
        self.cells, self.cwd = [], Path(cwd)
        self.flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        for source in sources:
            self.run(source)

    def run(self, source, cell_id=""):
        """Execute a cell; gives what it printed."""
        self.cells.append(capture.Cell(len(self.cells) + 1, source, cell_id))
        read = python_tree(source)
        return self._execute(read[1]) if read else ""

    def _execute(self, text):
        name = f"<cell {len(self.cells)} of {id(self)}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        self.flags |= compiler_flags(futures_in(ast.parse(text)))
        code = compile(text, name, "exec", flags=self.flags, dont_inherit=True)
        with redirect_stdout(io.StringIO()) as out:
            result = eval(code, self.namespace)
            if inspect.isawaitable(result):
                asyncio.run(result)
        return out.getvalue()

    def capture(self, code, **options):
        return capture.capture(code, self.namespace, self.cells, cwd=self.cwd, **options)

    def row(self, code, name, **options):
        """The captured row of a name."""
        return next(row for row in self.capture(code, **options).captured if row.name == name)

    def export(self, code, params=None, **options):
        captured = self.capture(code, parameters=tuple(params or ()), **options)
        with tempfile.TemporaryDirectory() as folder:
            capture.write_bundle(captured, Path(folder, "bundle"))
            return capture.export_script(Path(folder, "bundle"), params or {})

    def elsewhere(self, code, params=None, **options):
        """What the captured script prints, run alone in an empty folder."""
        return run_alone(self.export(code, params, **options))

    def both(self, code):
        """What the cell prints elsewhere, after checking that it prints the same here."""
        there = self.elsewhere(code)
        here = self._execute(code)
        assert there == here
        return here


def run_alone(script):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.py")
        path.write_text(script)
        empty = Path(folder, "empty")
        empty.mkdir()
        done = subprocess.run([sys.executable, "-I", path], cwd=empty, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:] + script[-3000:]
    return done.stdout


@pytest.fixture(scope="session")
def notebook():
    """The class of small notebooks."""
    return Notebook


@pytest.fixture(scope="session")
def alone():
    """Runs a script by `python -I` in an empty folder; gives what it prints."""
    return run_alone

"""A small notebook: cells executed in one namespace, as IPython does, without IPython; and scripts run in forks."""

import ast
import asyncio
import atexit
import inspect
import io
import linecache
import os
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from subprocess import PIPE

from jupyter_autotrain import capture
from jupyter_autotrain.capture.syntax.cells import python_tree
from jupyter_autotrain.capture.syntax.history import compiler_flags, futures_in

FORK_SERVER = """
import cloudpickle, importlib, os, runpy, sys, tempfile
for module in sys.argv[1:]:
    importlib.import_module(module)
for line in sys.stdin:
    script, folder = line.split("\\0")[:2]
    child = os.fork()
    if not child:
        os.chdir(folder)
        out = os.open(script + ".out", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(out, 1), os.dup2(out, 2)
        sys.argv = [script]
        tempfile.tempdir = os.path.dirname(script)  # `os._exit` leaves there what it leaves
        try:
            runpy.run_path(script, run_name="__main__")
        except BaseException:
            import traceback
            traceback.print_exc()
            sys.stdout.flush()
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

MEMORY = Path("/dev/shm")  # files here cost no disk access; folders elsewhere work too
TEMPORARY = MEMORY if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else None


@cache
def fork_server(*modules):
    """One `python -I` that forks for every script: a start per script would cost most of the tests' time.

    It has imported these modules, which may be slow to import.
    """
    process = subprocess.Popen([sys.executable, "-I", "-c", FORK_SERVER, *modules], stdin=PIPE, stdout=PIPE, text=True)
    atexit.register(process.communicate)
    return process


def run_alone(script, *imported):
    """Return what a script prints, run under `python -I` in an empty folder, where modules may be imported already."""
    with tempfile.TemporaryDirectory(dir=TEMPORARY) as folder:
        path = Path(folder, "run.py")
        path.write_text(script)
        empty = Path(folder, "empty")
        empty.mkdir()
        process = fork_server(*imported)
        process.stdin.write(f"{path}\0{empty}\0\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        printed = Path(f"{path}.out").read_text()
        assert code == 0, printed[-3000:] + script[-3000:]
        return printed


class Notebook:
    """Executes cells in one namespace called `__main__` and captures further ones."""

    def __init__(self, *sources, cwd="."):
        self.namespace = {"__name__": "__main__", "__builtins__": __builtins__}
        self.cells = []
        self.cwd = Path(cwd)
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
        """Return the captured row of a name."""
        return next(row for row in self.capture(code, **options).captured if row.name == name)

    def export(self, code, params=None, **options):
        captured = self.capture(code, parameters=tuple(params or ()), **options)
        with tempfile.TemporaryDirectory(dir=TEMPORARY) as folder:
            capture.write_bundle(captured, Path(folder, "bundle"))
            return capture.export_script(Path(folder, "bundle"), params or {}, seed=options.get("seed"))

    def elsewhere(self, code, params=None, *, imported=(), **options):
        """Return what the captured script prints, run alone in an empty folder."""
        return run_alone(self.export(code, params, **options), *imported)

    alone = staticmethod(run_alone)

    def both(self, code, *imported):
        """Return what the cell prints elsewhere, after checking that it prints the same here."""
        there = self.elsewhere(code, imported=imported)
        here = self._execute(code)
        assert there == here
        return here

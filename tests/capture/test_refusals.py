"""Tests that all that cannot travel is refused by name before anything is sent, at once, in six lines at most."""

# Cells are written on one line each, however long, so that they read as a list.

import os
import socket
import sqlite3
import subprocess
import sys
import threading
import types
from pathlib import Path


def test_names_that_may_be_missing_are_no_error(notebook):
    code = (
        "try:\n    profile\nexcept NameError:\n    profile = lambda f: f\n"
        "if __name__ == '__main__':\n    later = 1\ndef f(): return later\nprint(f(), __name__)"
    )
    assert notebook().both(code) == "1 __main__\n"


def test_a_line_that_only_looks_like_a_magic_is_python(notebook):
    assert notebook("a = 7").both("x = (a\n% 4)\nprint(x, '''\n!ls\n''')") == "3 \n!ls\n\n"


def test_a_definition_without_source_travels_by_value(notebook):
    book = notebook("k = 2")
    exec("def secret(x): return x * k", book.namespace)
    assert book.both("print(secret(4))") == "8\n"
    assert book.row("print(secret(4))", "secret").how == "data"


def test_every_kind_of_refused_thing_is_closed_by_its_own_type():
    from jupyter_autotrain.capture.values import unpicklable

    with socket.socket() as s, sqlite3.connect(":memory:") as c, Path(os.devnull).open() as f:
        assert all(map(unpicklable.reason, (s, c, f, threading.RLock(), threading.Event(), sys._getframe())))
    c.close()
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        assert unpicklable.reason(process) == "a running process"
    assert not any(map(unpicklable.reason, (1, "x", [f], types.SimpleNamespace(), len)))

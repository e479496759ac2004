"""Notebooks of the `.patterns` files, and how to try one: in a kernel that forks, and its last cell by a worker."""

import atexit
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from subprocess import PIPE

HEAD = "=== "
NEXT_CELL = "# %%\n"
HEAVY = ("numpy", "pandas", "sklearn.linear_model", "torch", "torch._dynamo", "matplotlib.pyplot")
TIMES = re.compile(r"^(?:CPU times|Wall time).*\n", re.MULTILINE)  # what `%time` prints, here only
QUICK = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}


@dataclass(frozen=True)
class Pattern:
    """A notebook of a file: what it is about, its cells, and what must become of it."""

    file: str
    about: str
    cells: tuple[str, ...]
    outcome: str

    @property
    def needs_libraries(self):
        """Return whether it is worth it that both sides have loaded the libraries before."""
        return re.search(r"numpy|pandas|torch|sklearn|matplotlib", "\n".join(self.cells)) is not None


def patterns():
    """All notebooks of the files beside this one."""
    for file in sorted(Path(__file__).parent.glob("*.patterns")):
        for text in file.read_text(encoding="utf-8").split(f"\n{HEAD}")[1:]:
            head, _, body = text.partition("\n")
            about, _, outcome = head.partition(" | ")
            yield Pattern(file.stem, about, tuple(cell.strip("\n") for cell in body.split(NEXT_CELL)), outcome)


@dataclass(frozen=True)
class Outcome:
    """End of a notebook's last cell.

    `here` and `there` are what it printed in the kernel and in the trial; `ended_here` and `ended_there` how; `bundle`
    holds the files that travelled.
    """

    refused: str
    told: tuple[str, ...]
    notes: tuple[str, ...]
    here: str
    there: str
    ended_here: int
    ended_there: int
    took_s: float
    bundle: dict[str, bytes]

    @property
    def script(self):
        """The text that the trial ran."""
        return self.bundle["main.py"].decode()

    @property
    def equal(self):
        """The same was printed, and the cell ended the same way."""
        return self.refused == "" and self.here == self.there and bool(self.ended_here) == bool(self.ended_there)

    def tells(self, name):
        """Return whether a name stands in what is told before anything is sent."""
        pattern = rf"(?<![\w]){re.escape(name)}(?![\w])"
        return any(re.search(pattern, line) for line in (*self.told, *self.notes))


def bundle_in(folder):
    """Return the files of a bundle by their place in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@cache
def side(which, modules):
    """Return the process that forks for one side."""
    command = [sys.executable, "-Xfrozen_modules=off", str(Path(__file__).with_name("forking.py")), which, *modules]
    settings = tempfile.TemporaryDirectory()
    atexit.register(settings.cleanup)
    environ = {**os.environ, **QUICK, "IPYTHONDIR": settings.name}
    process = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True, env=environ)
    atexit.register(process.communicate)
    return process


def ask(process, job):
    process.stdin.write(json.dumps(job) + "\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def try_notebook(cells, line="", modules=None):
    """Run the cells, submit the last one, run it on both sides.

    Args:
        cells: The notebook; the last cell is the one that trains.
        line: What stands on the magic's line.
        modules: Libraries that both sides have loaded before; None: what the text asks for.
    """
    if modules is None:
        modules = HEAVY if Pattern("", "", cells, "").needs_libraries else ()
    kernel = side("kernel", modules)
    trial = side("trial", modules)
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        (root / "notebook").mkdir()
        (root / "trial").mkdir()
        job = {"folder": str(root / "notebook"), "log": str(root / "log"), "here": str(root / "here"),
               "result": str(root / "result"), "trial": str(root / "trial"), "line": line,
               "cells": list(cells[:-1]), "cell": cells[-1]}  # fmt: skip
        ended_here = ask(kernel, job)
        log = (root / "log").read_text()
        assert (root / "result").exists(), log
        result = json.loads((root / "result").read_text())
        there = ""
        ended_there = 0
        if not result["refused"]:
            job["log"] = str(root / "there")
            job["folder"] = str(root / "trial")
            ended_there = ask(trial, job)
            there = (root / "there").read_text()
        here = TIMES.sub("", (root / "here").read_text())
        return Outcome(
            result["refused"], tuple(result["told"]), tuple(result["notes"]), here, there, ended_here, ended_there,
            result["took_s"], bundle_in(root / "trial" / "bundle"),
        )  # fmt: skip

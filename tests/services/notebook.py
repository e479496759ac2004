"""A notebook whose place `lab` is a service, as a person uses it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import CapturedIO, capture_output
from traitlets.config import Config

from jupyter_autotrain import manager
from jupyter_autotrain.core.home import Home
from tests.projects import trust_project


class Notebook:
    """Runs cells in a kernel's shell, with one place.

    Args:
        folder: Of the notebook.
        options: Of the place `lab`.
    """

    def __init__(self, folder: Path, options: Mapping[str, object]) -> None:
        self.folder = folder
        (folder / "autotrain.yaml").write_text(json.dumps({"backends": {"lab": options}}))
        trust_project(folder, os.environ)
        self.shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
        self.run("%load_ext jupyter_autotrain")

    def run(self, source: str) -> str:
        """Return what a cell shows."""
        shown: CapturedIO
        with capture_output() as shown:
            result = self.shell.run_cell(source)
        assert result.success, (result.error_in_exec, result.error_before_exec)
        return shown.stdout + "".join(str(output.data.get("text/plain", "")) for output in shown.outputs)

    def value(self, expression: str) -> object:
        """Return what an expression gives in the kernel."""
        return self.shell.ev(expression)


def kill_manager(home: Home) -> None:
    """Kill the manager of a home, and wait for its end."""
    status = manager.status(home)
    if status.alive:
        process = psutil.Process(status.pid)
        process.kill()
        psutil.wait_procs([process], timeout=60)


@contextmanager
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Mapping[str, object]) -> Iterator[Notebook]:
    """Open a notebook with a home of its own, and kill its manager afterwards."""
    home = Home(tmp_path / "home")
    folder = tmp_path / "notebook"
    folder.mkdir()
    monkeypatch.setenv("JUPYTER_AUTOTRAIN_HOME", str(home.root))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(folder)
    made = Notebook(folder, options)
    try:
        yield made
    finally:
        made.shell.run_line_magic("unload_ext", "jupyter_autotrain")
        made.shell.reset(new_session=True)
        kill_manager(home)

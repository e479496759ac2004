"""A home of its own with a manager of its own, and a notebook without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from IPython.utils.capture import CapturedIO, capture_output
from traitlets.config import Config

from jupyter_autotrain import manager
from jupyter_autotrain.core.home import Home


class Notebook:
    """Runs cells one after another in one shell; `run` gives the result and what was printed."""

    def __init__(self) -> None:
        # In a file, which a thread writes, the history would be in the folder of the first test of this process.
        self.shell = InteractiveShell.instance(config=Config({"HistoryManager": {"hist_file": ":memory:"}}))
        self.shell.user_ns_hidden.update(self.shell.user_ns)  # as a kernel does when it has started
        self.run("%load_ext jupyter_autotrain")

    def run(self, source: str) -> tuple[ExecutionResult, str]:
        shown: CapturedIO
        with capture_output() as shown:
            result = self.shell.run_cell(source, store_history=True)
        return result, shown.stdout + "".join(str(output.data.get("text/plain", "")) for output in shown.outputs)

    def fails(self, source: str) -> list[str]:
        """Return the lines shown by a cell that must fail."""
        result, _ = self.run(source)
        error = result.error_in_exec or result.error_before_exec
        assert error is not None, "the cell was expected to fail"
        return error._render_traceback_()

    def value(self, name: str) -> object:
        return self.shell.user_ns[name]


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    home = Home(tmp_path_factory.mktemp("autotrain") / "home")
    yield home
    status = manager.status(home)
    if status.alive:
        process = psutil.Process(status.pid)
        process.kill()
        psutil.wait_procs([process], timeout=240)


@pytest.fixture
def notebook(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    monkeypatch.setenv("JUPYTER_AUTOTRAIN_HOME", str(home.root))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))  # as a kernel does with the notebook's folder
    notebook = Notebook()
    yield notebook
    notebook.shell.run_line_magic("unload_ext", "jupyter_autotrain")
    notebook.shell.reset(new_session=True)

"""Run a notebook headless through the real magic, say where the executed copy lies, and list its experiments.

    python example_notebooks/run.py example_notebooks/01_quickstart.ipynb
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from nbformat.sign import NotebookNotary
from traitlets.config import Config

from jupyter_autotrain import experiments
from jupyter_autotrain.cli import main as autotrain

HERE = Path(__file__).parent


def main(path: Path) -> int:
    """Execute the notebook at `path`; the exit status is 0 when every cell did what it should."""
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
    began_s = time.time()
    notebook = nbformat.read(path, as_version=4)
    target = HERE / "executed" / path.name
    target.parent.mkdir(exist_ok=True)
    try:
        with TemporaryDirectory() as sockets:  # no open ports here either
            NotebookClient(
                notebook,
                timeout=600,
                store_widget_state=False,
                resources={"metadata": {"path": str(target.parent)}},
                config=Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/kernel"}}),
            ).execute()
    finally:
        nbformat.write(notebook, target)
        # JupyterLab draws the curves only of notebooks that this user has run, which is what happened here.
        NotebookNotary().sign(notebook)
    print(f"\nExecuted {path.name} in {time.time() - began_s:.0f} s. Its experiments:\n")
    for experiment in reversed([e for e in experiments() if e.record.created_s >= began_s]):
        autotrain(["show", experiment.id])
        print()
    print(f"The executed notebook: {os.path.relpath(target)}")
    print("Open it in JupyterLab: make lab")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))

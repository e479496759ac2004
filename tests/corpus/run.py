"""The corpus: public notebooks, run in kernels of their own; each cell that trains is also submitted and compared.

    python tests/corpus/run.py FOLDER [--only PATTERN] [--results FILE] [--limit-s 600] [--memory-gb 8] [--cells 8]

FOLDER holds projects, each a folder with notebooks at any depth and the data they read. Every notebook runs in a fresh
copy of its project, without network (`unshare` gives it none). RESULTS gets one line of JSON for each training cell;
notebooks that stand in it already are not run again. Ends with status 1 when a cell differs silently or fails.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

sys.path.append(str(Path(__file__).resolve().parents[2]))

from jupyter_autotrain import manager
from jupyter_autotrain.core.home import Home
from tests.corpus.outcome import load
from tests.corpus.table import table

_ONE = Path(__file__).with_name("one_notebook.py")
_NO_NETWORK = ("unshare", "--map-root-user", "--net")


def main() -> int:
    options = _options()
    results = Path(options.results).resolve()
    results.touch()
    notebooks = sorted(path for path in options.folder.rglob("*.ipynb") if path.match(options.only))
    with tempfile.TemporaryDirectory(prefix="corpus-") as place:
        home = Home(Path(place, "home"))
        for path in notebooks:
            name = str(path.relative_to(options.folder))
            if name not in {outcome.notebook for outcome in load(results)}:
                print(name, flush=True)
                _run(path.resolve(), name, results, options, home)
        _end_manager(home)
    outcomes = load(results)
    print(table(outcomes))
    return int(any(outcome.verdict in {"different", "failed"} for outcome in outcomes))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="*", help="a pattern for the paths of notebooks")
    parser.add_argument("--results", default="corpus.jsonl")
    parser.add_argument("--limit-s", type=float, default=600.0, help="of one notebook")
    parser.add_argument("--memory-gb", type=float, default=8.0, help="of one process")
    parser.add_argument("--cells", type=int, default=8, help="the most training cells of one notebook")
    return parser.parse_args()


def _run(path: Path, name: str, results: Path, options: argparse.Namespace, home: Home) -> None:
    """Run one notebook in a copy of its project; it is ended with all its processes at its limit."""
    with tempfile.TemporaryDirectory(prefix="corpus-") as place:
        project = Path(place, Path(name).parts[0])
        shutil.copytree(options.folder / project.name, project, ignore=shutil.ignore_patterns("*.ipynb", ".git"))
        folder = Path(place, name).parent
        environ = {
            **os.environ, "JUPYTER_AUTOTRAIN_HOME": str(home.root), "IPYTHONDIR": f"{place}/ipython", "HOME": place,
            "PYTHONHASHSEED": "1",  # sets of texts are ordered by it, otherwise in each kernel
            "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "LOKY_MAX_CPU_COUNT": "1",
        }  # fmt: skip
        limits = [str(int(options.memory_gb * 2**30)), str(options.cells)]
        argv = [*_NO_NETWORK, sys.executable, "-P", str(_ONE), str(path), name, str(results), *limits]
        with Path(f"{results}.log").open("ab") as log:
            process = subprocess.Popen(argv, cwd=folder, env=environ, stdout=log, stderr=log, start_new_session=True)
            try:
                process.wait(options.limit_s)
            except subprocess.TimeoutExpired:
                print("  ended at its limit", flush=True)
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a notebook's process with all it started, the manager excepted, which left its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()


def _end_manager(home: Home) -> None:
    status = manager.status(home)
    if status.alive:
        psutil.Process(status.pid).kill()


if __name__ == "__main__":
    sys.exit(main())

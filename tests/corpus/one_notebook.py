"""Run one notebook of the corpus: `one_notebook.py NOTEBOOK NAME RESULTS MEMORY_BYTES`, in the notebook's folder."""

from __future__ import annotations

import resource
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from tests.corpus.cells import Training, parse, read
from tests.corpus.experiment import CELL_LIMIT_S, Comparison
from tests.corpus.kernel import Kernel
from tests.corpus.outcome import Outcome


def main() -> None:
    notebook, name, results, memory_bytes, most_cells = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_DATA, (int(memory_bytes), int(memory_bytes)))
    kernel = Kernel()
    training = Training()
    left = int(most_cells)
    for cell in read(Path(notebook)):
        tree = parse(cell.source)
        if tree is None or not training.trains(tree) or not left:
            ran = kernel.run(cell.source, CELL_LIMIT_S)
        else:
            left -= 1
            outcome = Outcome(name, cell.number)
            with tempfile.TemporaryDirectory() as folder:
                ran = Comparison(kernel, cell, tree, Path(folder)).run(outcome)
            outcome.keep(Path(results))
        if ran.error == "TooLongError" or not left:
            return


if __name__ == "__main__":
    main()

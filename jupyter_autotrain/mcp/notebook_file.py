"""The cells of a notebook file below one folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jupyter_autotrain.agent import files
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.errors import AutotrainError

MAGIC: Final = "%%autotrain"
_MOST_BYTES: Final = 50_000_000
_KERNEL: Final = "python3"


@dataclass(frozen=True, slots=True)
class CodeCell:
    """A code cell.

    Attributes:
        number: Its place among all cells, from 1.
        id: Its id in the file, or "".
        source: Its text.
    """

    number: int
    id: str
    source: str

    @property
    def is_training(self) -> bool:
        """True for a cell that is submitted."""
        return self.source.startswith(MAGIC)


@dataclass(frozen=True, slots=True)
class NotebookFile:
    """A notebook as it was saved.

    Attributes:
        path: Its path, absolute.
        kernel: The name of its kernel.
        cells: Its code cells in their order.
    """

    path: Path
    kernel: str
    cells: Sequence[CodeCell]

    @classmethod
    def read(cls, path: str, folder: Path) -> NotebookFile:
        """Read a notebook below a folder.

        Raises:
            AutotrainError: It lies elsewhere, is not there, or is no notebook.
        """
        found = (folder / path).resolve()
        if not found.is_relative_to(folder.resolve()) or found.suffix != ".ipynb":
            raise AutotrainError(
                f"{path} is not a notebook below {folder}.",
                "A path that ends with .ipynb, relative to the folder that the server was started in.",
                "Start `jupyter autotrain mcp` in the folder of the notebook.",
            )
        try:
            content = json.loads(files.read(found.parent, found.name, _MOST_BYTES))
            cells = [_code_cell(number, cell) for number, cell in enumerate(content["cells"], 1)]
            kernel = content.get("metadata", {}).get("kernelspec", {}).get("name", _KERNEL)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise AutotrainError(
                f"{path} cannot be read as a notebook: {error}.",
                "A notebook of format 4, as Jupyter saves it.",
                "Save it once in Jupyter.",
            ) from None
        return cls(found, str(kernel), [cell for cell in cells if cell is not None])

    def training_cell(self, cell: str) -> CodeCell:
        """Return the cell with `%%autotrain` that a number or an id means.

        Raises:
            AutotrainError: There is none such.
        """
        for found in self.cells:
            if cell in {str(found.number), found.id} and found.is_training:
                return found
        known = [str(found.number) for found in self.cells if found.is_training]
        near = closest_match(cell, known)
        raise AutotrainError(
            f"{self.path.name} has no cell {cell!r} that begins with {MAGIC}.",
            f"Expected one of the cells {', '.join(known)}." if known else f"None of its cells begins with {MAGIC}.",
            f"Did you mean {near}?" if near else "List them: list_cells",
        )

    def above(self, cell: CodeCell) -> tuple[str, ...]:
        """Return the code that runs before a cell: the code cells above it that are not submitted themselves."""
        return tuple(found.source for found in self.cells if found.number < cell.number and not found.is_training)


def _code_cell(number: int, cell: dict[str, object]) -> CodeCell | None:
    if cell["cell_type"] != "code":
        return None
    source = cell["source"]
    text = "".join(map(str, source)) if isinstance(source, list) else str(source)
    return CodeCell(number, str(cell.get("id", "")), text)

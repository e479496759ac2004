"""`data` of a cell: the paths of the header's section `data:`, by name."""

from __future__ import annotations

import os
from collections.abc import Iterator

TYPE_CHECKING = False  # every trial imports what names a cell finds
if TYPE_CHECKING:
    from pathlib import Path


class DataPaths:
    """Where data lies: `data.train` and `data["train"]` are the same `pathlib.Path`, as a file is opened by.

    A trial has it under the name `data`. In the notebook `data = at.DataPaths(train="./train.parquet")` lets the same
    cell run as an ordinary one.

    Args:
        **paths: The path of each name; `~` and relative paths are made absolute.
    """

    def __init__(self, **paths: str | os.PathLike[str]) -> None:
        from pathlib import Path  # noqa: PLC0415 - only trials with data pay

        given = {name: Path(path).expanduser() for name, path in paths.items()}
        self._paths = {name: Path(os.path.abspath(path)) for name, path in given.items()}

    def __getitem__(self, name: str) -> Path:
        try:
            return self._paths[name]
        except KeyError:
            raise KeyError(self._unknown(name)) from None

    def __getattr__(self, name: str) -> Path:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._paths[name]
        except KeyError:
            raise AttributeError(self._unknown(name)) from None

    def _unknown(self, name: str) -> str:
        return f"`data:` names no {name!r}; it names: {', '.join(self._paths) or 'nothing'}"

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._paths]

    def __repr__(self) -> str:
        return f"DataPaths({', '.join(f'{name}={str(path)!r}' for name, path in self._paths.items())})"

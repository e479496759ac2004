"""Checkpoints that only the backend of an ended attempt has; the home notes them for the attempt that follows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from jupyter_autotrain.core import files, wire
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.json import JsonValue, from_json, to_json


@dataclass(frozen=True, slots=True)
class KeptCheckpoints:
    """What an attempt has saved and the home has not got.

    Attributes:
        ref: The job that saved it.
        sizes: The bytes of each file, by its path in the trial directory.
    """

    ref: JobRef
    sizes: Mapping[str, int]

    @classmethod
    def read(cls, directory: Path) -> KeptCheckpoints | None:
        """What is noted in the home's directory of an attempt; None where that is nothing."""
        try:
            return from_json(cls, cast("JsonValue", files.read_json(directory, wire.KEPT_FILE)))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, directory: Path) -> None:
        """Note it, and no more that of before.

        Raises:
            OSError: It cannot be written.
        """
        wire.write_atomically(str(directory / wire.KEPT_FILE), json.dumps(to_json(self)).encode())

    def without(self, path: str) -> KeptCheckpoints:
        """When the home has got one more of the files."""
        return replace(self, sizes={name: size for name, size in self.sizes.items() if name != path})

    @property
    def size_bytes(self) -> int:
        """Of all files."""
        return sum(self.sizes.values())

"""Checkpoints that only the backend of an ended attempt has; the home notes them for the attempt that follows.

While some are noted, the home's own folder of that attempt's checkpoints is a part of them, which no attempt goes on
from: the newest would be missing, or a model without its optimizer.
"""

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
        """What is noted in the home's directory of an attempt; None where that is nothing, or no such note."""
        try:
            kept = from_json(cls, cast("JsonValue", files.read_json(directory, wire.KEPT_FILE)))
        except (OSError, ValueError, TypeError):
            return None
        return kept if _is_sound(kept) else None

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


def _is_sound(kept: object) -> bool:
    """Whether it is what `write` writes: a trial that runs in the home can have written it itself."""
    if not isinstance(kept, KeptCheckpoints) or not isinstance(kept.ref, JobRef):
        return False
    texts: tuple[object, ...] = (kept.ref.backend, kept.ref.job_id)
    mappings: tuple[object, ...] = (kept.ref.data, kept.sizes)
    if not all(isinstance(one, str) for one in texts) or not all(isinstance(one, Mapping) for one in mappings):
        return False
    return all(map(_is_file, kept.sizes.items()))


def _is_file(entry: tuple[str, object]) -> bool:
    path, size_bytes = entry
    folder, *inside = path.split("/")
    is_inside = folder == wire.CHECKPOINTS and bool(inside) and not {"", ".", ".."} & set(inside)
    return is_inside and isinstance(size_bytes, int) and size_bytes >= 0

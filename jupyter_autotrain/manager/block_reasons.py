"""What keeps each trial of an experiment, written by the manager for `why` to read: `waiting.json`."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path

from jupyter_autotrain.core import wire

_FILE = "waiting.json"
_log = logging.getLogger(__name__)


def publish(folder: Path, reasons: Mapping[int, str]) -> None:
    """Replace an experiment's notices: by trial number, the rest of a sentence that begins with the trial."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        wire.write_atomically(str(folder / _FILE), json.dumps(reasons).encode(), sync=False)
    except OSError as error:  # a full disk must not end an experiment
        _log.warning("%s: %s cannot be written: %s", folder, _FILE, error)


def read(folder: Path) -> dict[int, str]:
    """The notices as they stand; none when there never were any."""
    try:
        return {int(number): str(reason) for number, reason in json.loads((folder / _FILE).read_text()).items()}
    except (OSError, ValueError, AttributeError):
        return {}

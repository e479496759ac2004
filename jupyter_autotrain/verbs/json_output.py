"""What `--json` prints: the same facts as the text."""

from __future__ import annotations

import json

from jupyter_autotrain.core.json import JsonValue
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.views.json_objects import strict


def write_json(command: CommandContext, value: JsonValue) -> None:
    """Print a value as strict JSON; infinities and NaN become strings, which every reader takes."""
    command.write(json.dumps(strict(value), indent=2, allow_nan=False) + "\n")

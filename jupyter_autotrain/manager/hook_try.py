"""One try to tell a hook: resolves its variables, and leaves the rest to a process that ends at a deadline."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

from jupyter_autotrain.core.hooks import Hook, resolved
from jupyter_autotrain.core.json import JsonObject

_MARGIN_S: Final = 20.0  # for the process's own start and end
_MOST_CHARACTERS: Final = 300


def try_once(hook: Hook, payload: JsonObject, variables: Mapping[str, str]) -> str:
    """Tell a hook once; gives what went wrong, "" where nothing did. No value of a variable is in it.

    Args:
        hook: The hook.
        payload: What it is told.
        variables: The values of its variables.
    """
    missing = [name for name in hook.variables if name not in variables]
    if missing:
        names = ", ".join(missing)
        return f"{names} is not set; set it where you submit or attach, and the next try has it"
    request = {
        "url": resolved(hook.url, variables),
        "headers": {name: resolved(value, variables) for name, value in hook.headers.items()},
        "command": list(hook.command),
        "timeout_s": hook.timeout_s,
        "payload": payload,
    }
    fault = _run(json.dumps(request).encode(), hook.timeout_s + _MARGIN_S)
    for name, value in variables.items():
        fault = fault.replace(value, f"${{{name}}}") if value else fault
    return fault[:_MOST_CHARACTERS]


def _run(request: bytes, timeout_s: float) -> str:
    """What the process says of it. The request goes through a pipe: arguments can be read by others."""
    argv = [sys.executable, "-P", "-m", "jupyter_autotrain.manager.hook_process"]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        answer, _ = process.communicate(request, timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return "it did not end in time"
    if process.returncode:
        return f"its process ended with exit status {process.returncode}"
    return answer.decode(errors="replace").strip()

"""A trial that is a command, as in an experiment file of NNI."""

from __future__ import annotations

import os
import runpy
import shlex
import subprocess
import sys
from importlib.util import find_spec

from jupyter_autotrain.agent.ranks.stand_ins import FOLDER, NAMES

_SHELL = frozenset("|&;<>()$`\\\"'*?[]#~=%{}\n")
_PYTHON = ("python", "python3")


def run_command(command: str) -> None:
    """Run the command of a trial: a Python file in this process, any other command by the shell.

    Raises:
        SystemExit: The command has failed, with its exit status.
    """
    words = shlex.split(command)
    is_plain = not _SHELL & set(command)
    if is_plain and len(words) > 1 and words[0] in _PYTHON and words[1].endswith(".py"):
        sys.argv = words[1:]
        sys.path.insert(0, os.path.dirname(os.path.abspath(words[1])))
        runpy.run_path(words[1], run_name="__main__")
        return
    status = subprocess.run(command, shell=True, env=_environment(), check=False).returncode  # noqa: S602 - the user's own
    if status:
        raise SystemExit(status)


def _environment() -> dict[str, str]:
    """Return the variables of a command, whose Python processes find the stand-ins and report to this trial."""
    root = os.path.abspath(os.path.join(FOLDER, *[os.pardir] * 4))
    paths = [root, os.environ.get("PYTHONPATH", "")]
    if any(find_spec(name) is None or _is_ours(name) for name in NAMES):
        paths.append(FOLDER)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _is_ours(name: str) -> bool:
    spec = find_spec(name)
    return spec is not None and str(spec.origin).startswith(FOLDER)

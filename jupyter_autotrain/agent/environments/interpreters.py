"""The packages that the interpreter of an environment has installed, asked of that interpreter itself."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence

from jupyter_autotrain.agent import fields
from jupyter_autotrain.agent.environments import conda, image
from jupyter_autotrain.agent.environments.prepared import NotPreparedError, last_lines

# Runs in the interpreter asked, in Python 3.8 and later (3.8 is named as too old). Its folders come as for a trial.
_PROGRAM = """
import json, os, platform, sys, sysconfig
from importlib import metadata
def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
marker = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
is_managed = sys.prefix == sys.base_prefix and os.path.exists(marker)
print("\\n" + json.dumps([platform.python_version(), {name: version(name) for name in sys.argv[1:]}, is_managed]))
"""
_ASK_S = 60.0


def inspect(
    place: str, asked: Mapping[str, object], distributions: Sequence[str], environ: Mapping[str, str]
) -> dict[str, object]:
    """Return the state of the interpreter and its packages, as the fields of an `InterpreterReport` but for its node.

    Args:
        place: The interpreter of the place.
        asked: The `PythonEnvironment` as JSON.
        distributions: Their names.
        environ: The variables to run it with.
    """
    command = place
    is_image = asked.get("kind") == "image"
    try:
        argv = _argv(place, str(asked.get("kind")), str(asked.get("value")), environ)
        command = " ".join(argv)
        answer = _ask([*argv, "-c", _PROGRAM, *distributions], environ)
    except NotPreparedError as error:
        # An image that is not here yet is pulled by the first trial; until then nothing is known of it.
        fault = "" if is_image and command != place else str(error)
        return {"command": command, "python_version": "", "versions": {}, "fault": fault}
    return {"command": command, **answer, "fault": ""}


def _argv(place: str, kind: str, value: str, environ: Mapping[str, str]) -> list[str]:
    if kind == "python":
        return [os.path.expanduser(value)]
    if kind == "conda":
        return [conda.interpreter(value, environ)]
    if kind == "image":
        runtime = image.find_runtime(environ)
        return [runtime, "run", "--rm", "--pull=never", "--network=none", "--entrypoint=python3", value]
    return [place]


def _ask(argv: Sequence[str], environ: Mapping[str, str]) -> dict[str, object]:
    try:
        done = subprocess.run(
            argv, env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            check=False, timeout=_ASK_S, cwd="/",
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotPreparedError(
            f"{argv[0]} cannot be run: {getattr(error, 'strerror', None) or 'no answer'}."
        ) from error
    try:
        version, versions, is_managed = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        told = last_lines(done.stderr.splitlines(), 2)
        raise NotPreparedError(f"{argv[0]} ended with exit code {done.returncode}: {told}.") from None
    return {"python_version": str(version), "versions": fields.mapping(versions), "is_managed": bool(is_managed)}

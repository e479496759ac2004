"""The program of a job at a training service: a trial where there may be no container of its own.

Its package lies in one folder, as the service has unpacked it: the agent, `trial.json` where that is too long for a
variable, archives, and `secrets.json` with the values of secrets, which is removed before the trial begins. All that
the job makes lies in a folder of its own, which is removed at its end.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Mapping

from jupyter_autotrain.agent import fields, files
from jupyter_autotrain.agent.pods import places, requests
from jupyter_autotrain.agent.pods.pod import Pod
from jupyter_autotrain.agent.service.request_loop import RequestLoop

SECRETS_FILE = "secrets.json"
REQUEST_VARIABLE = "AUTOTRAIN_REQUEST"


def run(environ: Mapping[str, str], folder: str, code: str) -> int:
    """Run the trial; return the exit code of the job.

    Args:
        environ: The variables of the job.
        folder: Of all that the job makes.
        code: Where its package lies.
    """
    text = environ.get(places.TRIAL_VARIABLE)
    trial = fields.mapping(json.loads(text) if text else files.read_json(code, places.TRIAL_FILE))
    for archive in _mappings(trial.get("archives")):
        if archive.get("path"):
            archive["path"] = f"{code}/{os.path.basename(str(archive['path']))}"
    own = {**environ, places.TRIAL_VARIABLE: json.dumps(trial), **_secrets(code)}
    try:
        return Pod(own, folder, code).main()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _mappings(value: object) -> list[dict[str, object]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _secrets(code: str) -> dict[str, str]:
    """Return the values of the trial's secrets, which are not kept."""
    try:
        found = fields.mapping(files.read_json(code, SECRETS_FILE))
    except OSError:
        return {}
    with contextlib.suppress(OSError):
        os.unlink(f"{code}/{SECRETS_FILE}")
    return {name: str(value) for name, value in found.items()}


def answer(environ: Mapping[str, str], folder: str) -> None:
    """Answer one request about the files of a running job, on standard output.

    Args:
        environ: With the request, in `REQUEST_VARIABLE`.
        folder: Of all that the job makes.
    """
    RequestLoop(sys.stdout.buffer).answer(
        environ[REQUEST_VARIABLE].encode(), requests.handlers(folder, is_container=False)
    )

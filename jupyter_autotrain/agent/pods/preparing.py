"""The needs of a trial that a pod meets before its supervisor starts: data, checkpoints, and the cell's imports."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import cast

from jupyter_autotrain.agent import fields, wire
from jupyter_autotrain.agent.environments import interpreters, python_environment
from jupyter_autotrain.agent.environments.python_environment import (
    INSPECTED_KINDS,
    InterpreterReport,
    PythonEnvironment,
    PythonPackage,
)
from jupyter_autotrain.agent.errors import BackendUnavailableError, DataError
from jupyter_autotrain.agent.json import JsonObject, JsonValue, from_json, to_json
from jupyter_autotrain.agent.objects import archives
from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.agent.trial.trial_file import TrialFile


def prepare(trial: TrialFile, run: str, environ: Mapping[str, str]) -> list[str]:
    """Have all that a trial needs, and write its places into `trial`; return lines for the trial's stderr.

    The manager's side says in `trial`: `archives` (as `archives.place` takes them), `on_volume` (whether the
    profile's storage is mounted), `resumed` (the attempts that it may go on from, the last one first, as
    `layout.attempt` names them).

    Args:
        trial: `trial.json`, as it was sent.
        run: The folder of everything that the pod makes.
        environ: The variables of the container.

    Raises:
        DataError: Something is not there, or the image lacks what the cell imports.
    """
    on_volume = bool(trial.pop("on_volume", False))
    folder = f"{run}/data"
    trial["environments"] = f"{run}/environments"
    if on_volume:
        folder = places.DATA
        trial["environments"] = places.ENVIRONMENTS
    wanted = _mappings(trial.pop("archives", ()))
    found = archives.place([one for one in wanted if one.get("path")], f"{run}/data", {})  # small, so each pod's own
    credentials = _credentials(environ)
    found.update(archives.place([one for one in wanted if not one.get("path")], folder, credentials))
    if "data" in trial:
        trial["data"] = [_with_path(entry, found) for entry in _mappings(trial["data"])]
    trial["data_folder"] = folder
    trial["bundle"] = found.get(places.BUNDLE, "")
    earlier = fields.sequence(trial.pop("resumed", ()))
    resumed = (on_volume and _on_volume(earlier)) or found.get(places.CHECKPOINTS)
    if resumed:
        trial["resume_from"] = resumed
    _use_image(trial)
    return check(trial, str(trial["python"]), environ) if trial.get("python_packages") else []


def _mappings(value: object) -> list[dict[str, object]]:
    return list(map(fields.mapping, fields.sequence(value)))


def _with_path(entry: Mapping[str, object], found: Mapping[str, str]) -> dict[str, object]:
    """Return an entry of `data:` with its path in this pod, where it was sent."""
    place = found.get(f"{places.DATA_PREFIX}{entry.get('name')}")
    return {**entry, "path": f"{place}/{entry.get('file_name')}"} if place else dict(entry)


def _on_volume(earlier: Sequence[object]) -> str:
    """Return the checkpoints of the first of these attempts that has left any on the volume; "" where none has."""
    for attempt in map(str, earlier):
        for path in (places.checkpoints(attempt), f"{places.trial_directory(attempt, 0)}/{places.CHECKPOINTS}"):
            if any(not name.endswith(wire.DRAFT) for _, _, names in os.walk(path) for name in names):
                return path
    return ""


def _credentials(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the credentials of the storage, by the names that they are known by."""
    found = {name: value for name, value in environ.items() if name.startswith(places.CREDENTIAL_PREFIX)}
    return {name[len(places.CREDENTIAL_PREFIX) :]: value for name, value in found.items()}


def _use_image(trial: TrialFile) -> None:
    """Note that the pod runs in the image that `environment:` names: nothing is left to be started there."""
    asked = fields.mapping(trial.get("python_environment"))
    if asked.get("kind") == "image":
        trial["python_environment"] = {**asked, "kind": "place", "value": ""}


def failed_status(error: DataError) -> dict[str, object]:
    """Return the status file of a trial that could not begin."""
    now_s = time.time()
    reason = " ".join(filter(None, (error.found, error.action.replace("\n", " "))))
    return {
        "wire": 1, "state": "FAILED", "reason": reason, "exit_code": None, "signal": None, "supervisor": [0, 0.0, ""],
        "worker": None, "started_s": now_s, "ended_s": now_s, "failed_s": now_s, "peak_memory_bytes": None,
        "limits": "", "groups": [], "traceback": "", "cell_line": "", "kind": "environment",
    }  # fmt: skip


def check(trial: Mapping[str, object], python: str, environ: Mapping[str, str]) -> list[str]:
    """Make sure that an interpreter has all that a trial's cell imports; return a line for other versions, if any.

    Args:
        trial: `trial.json`.
        python: The interpreter of the image.
        environ: The variables to run it with.

    Raises:
        DataError: It lacks something; `action` has the line that installs it.
    """
    asked = from_json(PythonEnvironment, cast("JsonValue", trial.get("python_environment") or {}))
    entries = cast("list[JsonValue]", list(cast("list[JsonValue]", trial.get("python_packages") or ())))
    packages = [from_json(PythonPackage, entry) for entry in entries]
    if asked.kind not in INSPECTED_KINDS or not packages:
        return []
    found = interpreters.inspect(python, cast("JsonObject", to_json(asked)), [one.name for one in packages], environ)
    report = from_json(InterpreterReport, cast("JsonObject", {**found, "node": ""}))
    try:
        python_environment.refuse([report], packages)
    except BackendUnavailableError as error:
        image = "Or name an image that has it: `environment: {image: ...}`."
        raise DataError(error.found, error.expected, f"{error.action}\n{image}") from None
    return python_environment.differences([report], packages, str(trial.get("python_version") or report.python_version))

"""The comparison of a cell's imports with the packages of the image, in the pod, before the trial begins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from jupyter_autotrain.agent.environments import interpreters, python_environment
from jupyter_autotrain.agent.environments.python_environment import (
    INSPECTED_KINDS,
    InterpreterReport,
    PythonEnvironment,
    PythonPackage,
)
from jupyter_autotrain.agent.errors import BackendUnavailableError, DataError
from jupyter_autotrain.agent.json import JsonObject, JsonValue, from_json, to_json


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

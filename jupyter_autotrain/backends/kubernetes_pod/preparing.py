"""What has to be there in a pod before the trial's supervisor starts: data, checkpoints, and what the cell imports."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from jupyter_autotrain.backends.kubernetes_pod import layout, places
from jupyter_autotrain.core import wire
from jupyter_autotrain.errors import DataError
from jupyter_autotrain.worker import fields


def prepare(trial: dict[str, object], run: str, environ: Mapping[str, str]) -> list[str]:
    """Have all that a trial needs, and write into `trial` where it lies; gives lines for the trial's stderr.

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
    folder = layout.DATA if on_volume else f"{run}/data"
    sent = trial.pop("archives", ())
    wanted = [fields.mapping(one) for one in sent] if isinstance(sent, (list, tuple)) else []
    found = _place(wanted, folder, environ) if wanted else {}
    entries = trial.get("data")
    if isinstance(entries, (list, tuple)):
        trial["data"] = [_with_path(fields.mapping(entry), found) for entry in entries]
    trial["data_folder"] = folder
    trial["environments"] = layout.ENVIRONMENTS if on_volume else f"{run}/environments"
    if places.BUNDLE in found:
        trial["bundle"] = found[places.BUNDLE]
    earlier = trial.pop("resumed", ())
    resumed = _on_volume(earlier) if on_volume and isinstance(earlier, (list, tuple)) else ""
    if resumed or places.CHECKPOINTS in found:
        trial["resume_from"] = resumed or found[places.CHECKPOINTS]
    _use_image(trial)
    return _check_packages(trial, environ) if trial.get("python_packages") else []


def _place(wanted: list[dict[str, object]], folder: str, environ: Mapping[str, str]) -> Mapping[str, str]:
    from jupyter_autotrain.backends.kubernetes_pod import archives  # noqa: PLC0415 - only trials with archives pay

    return archives.place(wanted, folder, _credentials(environ))


def _check_packages(trial: Mapping[str, object], environ: Mapping[str, str]) -> list[str]:
    from jupyter_autotrain.backends.kubernetes_pod import packages  # noqa: PLC0415 - only cells that import pay

    return packages.check(trial, str(trial["python"]), environ)


def _with_path(entry: Mapping[str, object], found: Mapping[str, str]) -> dict[str, object]:
    """An entry of `data:` with its path in this pod, where it was sent."""
    place = found.get(f"{places.DATA_PREFIX}{entry.get('name')}")
    return {**entry, "path": f"{place}/{entry.get('file_name')}"} if place else dict(entry)


def _on_volume(earlier: Sequence[object]) -> str:
    """Where the checkpoints lie of the first of these attempts that has left any on the volume; "" where none has."""
    for attempt in map(str, earlier):
        for path in (layout.checkpoints(attempt), f"{layout.trial_directory(attempt, 0)}/{places.CHECKPOINTS}"):
            if any(not name.endswith(wire.DRAFT) for _, _, names in os.walk(path) for name in names):
                return path
    return ""


def _credentials(environ: Mapping[str, str]) -> dict[str, str]:
    """Those of the storage, by the names that they are known by."""
    found = {name: value for name, value in environ.items() if name.startswith(places.CREDENTIAL_PREFIX)}
    return {name[len(places.CREDENTIAL_PREFIX) :]: value for name, value in found.items()}


def _use_image(trial: dict[str, object]) -> None:
    """The pod runs in the image that `environment:` names: nothing is left to be started there."""
    asked = fields.mapping(trial.get("python_environment"))
    if asked.get("kind") == "image":
        trial["python_environment"] = {**asked, "kind": "place", "value": ""}


def failed_status(error: DataError) -> dict[str, object]:
    """The status file of a trial that could not begin."""
    now_s = time.time()
    reason = " ".join(part for part in (error.found, error.action.replace("\n", " ")) if part)
    return {
        "wire": 1, "state": "FAILED", "reason": reason, "exit_code": None, "signal": None, "supervisor": [0, 0.0, ""],
        "worker": None, "started_s": now_s, "ended_s": now_s, "failed_s": now_s, "peak_memory_bytes": None,
        "limits": "", "groups": [], "traceback": "", "cell_line": "", "kind": "environment",
    }  # fmt: skip

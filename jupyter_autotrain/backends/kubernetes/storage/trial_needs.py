"""The needs of a trial in its pods besides its code: data, checkpoints to go on from, the storage of the profile."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, cast

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonObject, to_json
from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.backends.kubernetes.objects import naming
from jupyter_autotrain.backends.kubernetes.objects.fields import part
from jupyter_autotrain.backends.kubernetes.storage import shipping
from jupyter_autotrain.backends.kubernetes.storage.code_objects import CodeFile
from jupyter_autotrain.backends.kubernetes.storage.shipping import Archive, Shipping
from jupyter_autotrain.backends.kubernetes.workloads import volumes
from jupyter_autotrain.backends.local.trial_directory import changed_error
from jupyter_autotrain.backends.transfer import folders
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.data import DataKind
from jupyter_autotrain.core.home import home_identity
from jupyter_autotrain.core.spec import TrialSpec

CREDENTIALS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AUTHORIZATION")


@dataclass(frozen=True, slots=True)
class TrialNeeds:
    """The additions to a trial's pods.

    Attributes:
        fields: What stands in `trial.json` besides.
        archives: What has to be sent.
        volumes, mounts, variables: Of the pods, as in a manifest.
    """

    fields: JsonObject
    archives: tuple[Archive, ...] = ()
    volumes: tuple[JsonObject, ...] = ()
    mounts: tuple[JsonObject, ...] = ()
    variables: tuple[JsonObject, ...] = ()

    @property
    def files(self) -> dict[str, CodeFile]:
        """Return what goes into ConfigMaps, by its name in `places.CODE`."""
        return {archive.file.name: archive.file for archive in self.archives if archive.file is not None}


def of_trial(
    trial: TrialSpec,
    context: BackendContext,
    options: JsonObject,
    ways: Shipping,
    checkpoints: tuple[int, Path] | None = None,
) -> TrialNeeds:
    """Return what a trial needs; nothing is sent.

    Args:
        trial: The trial.
        context: The home.
        options: Of the profile and the header's section.
        ways: How archives get to pods.
        checkpoints: The last attempt of which the home has checkpoints, and their folder; those of a later one may be
            on the volume, which only its pods see.

    Raises:
        BackendError: Something is too big, and the profile names no storage.
        DataError: Data was changed since the submission.
    """
    in_home, folder = checkpoints or (0 if trial.source else 1, None)
    archives = [*_data(trial, context, ways), *_bundle(trial, context, ways), *_checkpoints(folder, ways)]
    on_volume = volumes.has_volume(options)
    fields: dict[str, object] = {"on_volume": on_volume, "archives": [archive.entry for archive in archives]}
    if trial.data:
        fields["data"] = to_json(trial.data)
        fields["data_limit_bytes"] = options.get("data_cache_limit")
    if trial.resume_attempt is not None:
        earlier = range(trial.resume_attempt, in_home - 1, -1)
        fields["resumed"] = [_attempt(trial, context, attempt) for attempt in earlier]
    if trial.source is not None and checkpoints is None and not on_volume:
        fields["resume_note"] = f"starts over: {trial.source.label} has no checkpoint"
    own = _attempt(trial, context, trial.attempt)
    mounted = _mounted(own, options) if on_volume else ((), ())
    return TrialNeeds(cast("JsonObject", fields), tuple(archives), *mounted, _credentials(options))


def send(needs: TrialNeeds, trial: TrialSpec, context: BackendContext, ways: Shipping) -> None:
    """Have everything where the pods find it, but for what goes into ConfigMaps.

    Raises:
        BackendError: It cannot be sent.
        DataError: Data was changed since the submission.
    """
    for source in trial.data:
        manifest = context.data(trial, source.name) if source.kind is DataKind.COPY else None
        if manifest is not None and (changed := manifest.changed_file()):
            raise changed_error(source, changed)
    for archive in needs.archives:
        ways.send(archive, naming.user_of_storage(context.home, trial.experiment_id))


def secret_values(secret: JsonObject) -> dict[str, str]:
    """Return the credentials in a Secret, by the names of their variables; others of its keys are nobody's business."""
    data = part(secret, "data")
    found = {}
    for name in CREDENTIALS:
        if name in data:
            try:
                found[name] = base64.b64decode(str(data[name])).decode().strip()
            except (binascii.Error, UnicodeDecodeError):
                continue  # then the server says that it lacks it
    return found


def _data(trial: TrialSpec, context: BackendContext, ways: Shipping) -> list[Archive]:
    found = []
    for source in trial.data:
        manifest = context.data(trial, source.name) if source.kind is DataKind.COPY else None
        if manifest is not None:  # before the submission there is none
            name = f"{places.DATA_PREFIX}{source.name}"
            found.append(ways.archive(name, manifest.sha256, partial(folders.of_data, manifest)))
    return found


def _bundle(trial: TrialSpec, context: BackendContext, ways: Shipping) -> list[Archive]:
    folder = context.bundle(trial)
    if not folder.is_dir():  # before the submission
        return []
    return [ways.archive(places.BUNDLE, trial.bundle_sha256, partial(folders.scan_folder, folder))]


def _checkpoints(folder: Path | None, ways: Shipping) -> list[Archive]:
    if folder is None:
        return []
    return [ways.archive(places.CHECKPOINTS, str(folder), partial(folders.scan_folder, folder))]


def _attempt(trial: TrialSpec, context: BackendContext, attempt: int) -> str:
    """Return the folder of an attempt on the volume; of attempt 0 that of the trial's source."""
    home = home_identity(context.home)
    source = trial.source
    if attempt == 0 and source is not None:
        return places.attempt(home, naming.label_value(source.experiment_id), source.number, source.attempt)
    return places.attempt(home, naming.label_value(trial.experiment_id), trial.number, attempt)


def _mounted(attempt: str, options: JsonObject) -> tuple[tuple[JsonObject, ...], tuple[JsonObject, ...]]:
    """Return the volume of the storage: all of it, and of it the trial's checkpoints, which outlive its pods."""
    volume = volumes.storage_volume(options)
    whole = volumes.storage_mount(options, places.STORAGE)
    inside = places.checkpoints(attempt).removeprefix(f"{places.STORAGE}/")
    above = f"{whole['subPath']}/" if whole.get("subPath") else ""
    own: JsonObject = {
        "name": whole["name"], "mountPath": f"{places.TRIAL_DIRECTORY}/{wire.CHECKPOINTS}",
        "subPath": f"{above}{inside}",
    }  # fmt: skip
    return ((volume,) if volume is not None else ()), (whole, own)


def _credentials(options: JsonObject) -> tuple[JsonObject, ...]:
    """Return the variables by which pods reach the server of the storage; a trial itself does not get them."""
    secret = shipping.remote_secret(options)
    if not secret:
        return ()
    names = CREDENTIALS[:3] if "s3" in (shipping.remote_place(options) or {}) else CREDENTIALS[3:]
    return tuple(_reference(secret, name) for name in names)


def _reference(secret: str, name: str) -> JsonObject:
    source: Mapping[str, JsonObject] = {"secretKeyRef": {"name": secret, "key": name, "optional": True}}
    return {"name": f"{places.CREDENTIAL_PREFIX}{name}", "valueFrom": source}

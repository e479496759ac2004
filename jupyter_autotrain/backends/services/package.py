"""All that a trial is at a service: its files, the same for every trial of an experiment, and `trial.json`."""

from __future__ import annotations

import hashlib
import io
import json
import re
import secrets
import shlex
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, cast

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.environment import travelling
from jupyter_autotrain.agent.json import JsonObject, JsonValue, to_json
from jupyter_autotrain.agent.objects import agent_archive
from jupyter_autotrain.agent.pods import places, service_job
from jupyter_autotrain.backends import travelling_code, trial_content
from jupyter_autotrain.backends.local.trial_directory import changed_error
from jupyter_autotrain.backends.log_channel.collected import saved_checkpoints
from jupyter_autotrain.backends.transfer import folders
from jupyter_autotrain.backends.transfer.folders import FolderManifest, TarStream
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.data import DataKind
from jupyter_autotrain.core.home import home_identity
from jupyter_autotrain.core.spec import TrialSpec

_MOST_VARIABLE_BYTES = 64 << 10
_PAUSE_S = 0.25  # a log is fetched in whole lines: few of them carry much
PLACE: Final = "services"
_OWN: Final = "autotrain-"
_DIGEST_DIGITS = 10
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class TrialPackage:
    """A trial at a service.

    Attributes:
        home: The identity of the home.
        name: Of its job: the same trial of the same home has the same one.
        trial: The trial.
        options: Of the profile and the header's section.
        files: By their names in one folder.
        variables: Of the job.
        is_pilot: Whether the job runs trials one after another; see `reuse`.
    """

    home: str
    name: str
    trial: TrialSpec
    options: JsonObject
    files: Mapping[str, bytes]
    variables: Mapping[str, str]
    is_pilot: bool = False

    @property
    def python(self) -> str:
        """The interpreter at the service."""
        return str(self.options.get("python") or "python3")

    @property
    def image(self) -> str:
        """The image of the job: the header's, else the profile's."""
        asked = self.trial.python_environment
        is_given = asked.kind == "image" and asked.value
        return str(asked.value if is_given else self.options.get("image"))

    @property
    def exports(self) -> list[str]:
        """The commands that set the variables of a job that has `trial.json` as a file."""
        return [f"export {name}={shlex.quote(value)}" for name, value in sorted(self.job_variables.items())]

    @property
    def job_variables(self) -> Mapping[str, str]:
        """The variables of a job that has `trial.json` as a file."""
        return {name: value for name, value in self.variables.items() if name != places.TRIAL_VARIABLE}

    @property
    def trial_text(self) -> str:
        """`trial.json`."""
        return self.variables.get(places.TRIAL_VARIABLE) or self.files[places.TRIAL_FILE].decode()

    @property
    def shared_files(self) -> Mapping[str, bytes]:
        """The files that trials of an experiment share."""
        return {name: content for name, content in self.files.items() if name != places.TRIAL_FILE}

    @property
    def nodes(self) -> int:
        """Return how many nodes the trial has."""
        return self.trial.resources.nodes

    def run_folder(self, variables: Mapping[str, str]) -> str:
        """Return the folder of all that a job makes, in its container.

        Args:
            variables: Those of `Service`: where the workers of a job have one disk, each has a folder of its own.
        """
        node = f"-${variables['rank']}" if self.nodes > 1 else ""
        return f"/tmp/{self.name}{node}"  # noqa: S108 - in its container

    def secret_files(self, values: Mapping[str, str]) -> Mapping[str, bytes]:
        """Return the files with the values of the trial's secrets, one for each node; none where it has no secrets."""
        names = (*self.trial.secrets, wire.TOKEN_VARIABLE)
        wanted = {name: values[name] for name in names if name in values}
        if not wanted:
            return {}
        content = json.dumps(wanted).encode()
        return {f"secrets{service_job.of_node(node, self.nodes)}.json": content for node in range(self.nodes)}

    def with_secrets(self, values: Mapping[str, str], node: int = 0) -> Mapping[str, bytes]:
        """Return the files with the values of the trial's secrets among them, for one of its nodes."""
        own = sorted(self.secret_files(values).items())[node : node + 1]
        return {**self.files, **dict(own)}


def job_name(home: str, job_id: str, longest: int = 120) -> str:
    """Return the name of a job: lower-case letters, digits and dashes, the same for the same trial of the same home."""
    digest = hashlib.sha256(f"{home}\n{job_id}".encode()).hexdigest()[:_DIGEST_DIGITS]
    told = re.sub(r"[^a-z0-9]+", "-", job_id.lower()).strip("-")
    return f"{_OWN}{told[: longest - _DIGEST_DIGITS - 12].rstrip('-')}-{digest}"


def experiment_of(home: str, name: str) -> str:
    """Return the experiment of the job of a name; "" for a job of another home."""
    job_id = name[len(_OWN) : -_DIGEST_DIGITS - 1]
    return job_id.rsplit("-", 2)[0] if job_name(home, job_id) == name else ""


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return files as one zip file; the same files give the same bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, _ZIP_TIME)
            info.external_attr = 0o600 << 16
            archive.writestr(info, files[name])
    return content.getvalue()


class Packer:
    """Makes the packages of one profile; remembers what it has packed, as trials share it.

    Args:
        context: The home.
        node_variables: Those of `Service`.
        lingers: Whether a job waits at its end until all is collected.

    Attributes:
        home: Its identity.
    """

    def __init__(self, context: BackendContext, node_variables: Mapping[str, str], *, lingers: bool = False) -> None:
        self._lingers = lingers
        self._node_variables = node_variables
        self._context = context
        self.home = home_identity(context.home)
        self._packed: dict[str, tuple[str, bytes]] = {}

    def pack(self, trial: TrialSpec, options: JsonObject) -> TrialPackage:
        """Return the package of a trial.

        Raises:
            DataError: Data was changed since the submission.
        """
        archives, files = self._archives(trial)
        files[agent_archive.NAME] = travelling_code.archive().content
        content: dict[str, object] = dict(trial_content.begin(trial, trial.options))
        content["environment"] = travelling(trial.environment)
        content["archives"] = archives
        if trial.data:
            content["data"] = to_json(trial.data)
        saved = any(one["name"] == places.CHECKPOINTS for one in archives)
        if trial.source is not None and not saved:
            content["resume_note"] = f"starts over: {trial.source.label} has no checkpoint"
        text = json.dumps(content, sort_keys=True)
        nodes = trial.resources.nodes
        job: dict[str, JsonValue] = {
            "nodes": nodes, "pause_s": _PAUSE_S, "is_container": False, "lingers": self._lingers,
        }  # fmt: skip
        if nodes > 1:
            job["variables"] = dict(self._node_variables)
        variables = {"PYTHONUNBUFFERED": "1", places.POD_VARIABLE: json.dumps(job, sort_keys=True)}
        if len(text.encode()) > _MOST_VARIABLE_BYTES:
            files[places.TRIAL_FILE] = text.encode()
        else:
            variables[places.TRIAL_VARIABLE] = text
        name = job_name(self.home, trial.job_id)
        return TrialPackage(self.home, name, trial, options, files, variables)

    def _archives(self, trial: TrialSpec) -> tuple[list[JsonObject], dict[str, bytes]]:
        """Return how the trial finds its archives, and their files."""
        wanted: dict[str, tuple[str, Callable[[], FolderManifest]]] = {}
        for source in trial.data:
            manifest = self._context.data(trial, source.name) if source.kind is DataKind.COPY else None
            if manifest is None:
                continue
            if changed := manifest.changed_file():
                raise changed_error(source, changed)
            name = f"{places.DATA_PREFIX}{source.name}"
            wanted[name] = (manifest.sha256, partial(folders.of_data, manifest))
        bundle = self._context.bundle(trial)
        if bundle.is_dir():  # before the submission there is none
            wanted[places.BUNDLE] = (trial.bundle_sha256, partial(folders.scan_folder, bundle))
        if saved := saved_checkpoints(trial, self._context, PLACE):
            wanted[places.CHECKPOINTS] = (str(saved[1]), partial(folders.scan_folder, saved[1]))
        entries: list[JsonObject] = []
        files: dict[str, bytes] = {}
        for name, (key, read) in wanted.items():
            if key not in self._packed:
                content = TarStream(read()).compressed()
                self._packed[key] = (hashlib.sha256(content).hexdigest(), content)
            digest, content = self._packed[key]
            files[f"{digest}.tar.gz"] = content
            entries.append({"name": name, "sha256": digest, "path": f"{digest}.tar.gz"})
        return entries, files


def answered(text: str) -> JsonValue | None:
    """Return the answer among the lines that a job has printed; None where there is none."""
    for line in reversed(text.splitlines()):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and ({"ok", "failure"} & set(found)):
            return cast("JsonValue", found)
    return None


def new_name(prefix: str) -> str:
    """Return a name that no other job has."""
    return f"{prefix}-{secrets.token_hex(4)}"

"""The needs of a trial on its host that come from elsewhere: its data, and the checkpoints of an earlier attempt.

Files and folders of data are sent once per content. What is there already is named by its path; what has a URL is
fetched by the trial itself, into the same cache. Checkpoints stay on the host of the earlier attempt until then.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonObject, JsonValue, to_json
from jupyter_autotrain.agent.objects.data_cache import DEFAULT_LIMIT_BYTES
from jupyter_autotrain.backends import trial_content
from jupyter_autotrain.backends.directories import fetch, sizes
from jupyter_autotrain.backends.local.trial_directory import changed_error
from jupyter_autotrain.backends.ssh.link import HostDirectory, HostLink
from jupyter_autotrain.backends.ssh.multi_node import names_of_nodes
from jupyter_autotrain.backends.transfer import folders
from jupyter_autotrain.backends.transfer.folders import FolderManifest
from jupyter_autotrain.backends.transfer.sending import ProgressCallback
from jupyter_autotrain.backends.trial_content import are_there, in_home
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.data import DataKind, DataManifest, DataSource
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import BackendError, BackendUnavailableError, DataError

FOLDER = "data"  # of the cache, in the host's work folder
_CARRIED = "carried"  # in the home's directory of the attempt: what comes from a host for another one


def place_data(
    link: HostLink,
    job: str,
    trial: TrialSpec,
    context: BackendContext,
    limit_bytes: int | None = None,
    progress: ProgressCallback | None = None,
) -> JsonObject:
    """Place a trial's data on a host, and return its entries of `trial.json`.

    Args:
        link: The link to the host.
        job: The trial's name there; its data stays in the cache until it has ended.
        trial: The trial.
        context: The home, which knows where the data lies here.
        limit_bytes: How much the cache there may hold.
        progress: Called with the bytes sent, and those to send.

    Raises:
        BackendUnavailableError: The host cannot be reached.
        BackendError: It cannot take the data.
        DataError: The data here has changed since the submission.
    """
    if not trial.data:
        return {}
    root = f"{link.greeting()['root']}/{FOLDER}"
    limit = limit_bytes or DEFAULT_LIMIT_BYTES
    entries: list[JsonValue] = []
    for source in trial.data:
        path = source.path
        if source.kind is DataKind.COPY:
            digest = _send(link, job, source, _manifest(context, trial, source), limit, progress)
            path = f"{root}/folders/{digest}/{source.file_name}"
        entries.append({**cast("JsonObject", to_json(source)), "path": path})
    return {"data": entries, "data_folder": root, "data_limit_bytes": limit}


def _manifest(context: BackendContext, trial: TrialSpec, source: DataSource) -> DataManifest:
    manifest = context.data(trial, source.name)
    if manifest is None:
        raise BackendError(f"It is not known what data.{source.name} held.", "", "Submit the cell again.")
    return manifest


def _send(
    link: HostLink,
    job: str,
    source: DataSource,
    manifest: DataManifest,
    limit_bytes: int,
    progress: ProgressCallback | None,
) -> str:
    """Send an entry unless it is there, and return the digest that it lies under."""
    folder = folders.of_data(manifest)
    with link.sent.sending(folder.digest):  # of trials that begin together one sends it
        asked = {"job": job, "digest": folder.digest, "size_bytes": manifest.size_bytes, "limit_bytes": limit_bytes}
        if changed := manifest.changed_file():
            raise changed_error(source, changed)
        if not link.ask("use_data", **asked):
            _send_folder(link, source, manifest, folder, progress)
            link.ask("keep_data", digest=folder.digest)
    return folder.digest


def _send_folder(
    link: HostLink,
    source: DataSource,
    manifest: DataManifest,
    folder: FolderManifest,
    progress: ProgressCallback | None,
) -> None:
    """Send all that is missing; once more where a file that was there turns out to be damaged."""
    for is_last in (False, True):
        try:
            link.send_folder(folder, f"{link.config.workdir}/{FOLDER}", "folders", progress)
        except BackendUnavailableError:
            raise
        except (BackendError, DataError, OSError) as error:
            if changed := manifest.changed_file():
                raise changed_error(source, changed) from error
            if is_last:
                raise
        else:
            return


def from_last_saved(
    links: Mapping[str, HostLink], job_name: Callable[[str], str], trial: TrialSpec, context: BackendContext
) -> TrialSpec:
    """Return the trial, set to go on from the last attempt with checkpoints.

    They are in the home, or on a host that answers.

    Args:
        links: The links to all hosts of the profile.
        job_name: Gives a job's name on its host.
        trial: The next attempt.
        context: The home.
    """
    silent: set[str] = set()

    def is_on_a_host(attempt: int) -> bool:
        jobs = names_of_nodes(job_name(trial.job_id_of(attempt)), trial.resources.nodes)
        return any(_has_any(links, host, jobs, silent) for host in links)

    found = trial_content.from_last_saved(trial, context, is_on_a_host)
    if not silent or found.resume_attempt in {None, trial.resume_attempt}:
        return found
    note = f"goes on from attempt {found.resume_attempt}: later checkpoints may be on {', '.join(sorted(silent))}"
    return replace(found, resume_note=f"{note}, without an answer")


def _has_any(links: Mapping[str, HostLink], host: str, jobs: Sequence[str], silent: set[str]) -> bool:
    """Tell whether a host has checkpoints of any of these jobs.

    One that does not answer is asked once.
    """
    if host in silent:
        return False
    try:
        return any(_has_checkpoints(links[host], job) for job in jobs)
    except BackendUnavailableError:
        silent.add(host)
        return False


def have_checkpoints(
    links: Mapping[str, HostLink], host: str, earlier: str, trial: TrialSpec, context: BackendContext
) -> JsonObject:
    """Bring the checkpoints of an earlier attempt to a host, and return their entries of `trial.json`.

    Args:
        links: The links to all hosts of the profile.
        host: Where the next attempt begins.
        earlier: The name of the earlier attempt, on this host or another.
        trial: The next attempt.
        context: The home, where those of an attempt on another backend are.

    Raises:
        BackendUnavailableError: The host cannot be reached.
        BackendError: It cannot take them, or another host cannot give them.
    """
    if _has_checkpoints(links[host], earlier):
        return {}
    owner, silent = _owner({name: link for name, link in links.items() if name != host}, earlier)
    if owner is not None:
        carried = context.directory(trial, trial.resume_attempt) / _CARRIED / earlier.rpartition("/")[2]
        return {"resume_from": _carry(owner, links[host], earlier, carried)}
    if found := in_home(context, trial):
        return {"resume_from": links[host].sent.send_checkpoints(found)}
    if silent:
        names = ", ".join(silent)
        return {"resume_note": f"starts over: its checkpoints may be on {names}, without an answer"}
    return {}


def _owner(links: Mapping[str, HostLink], earlier: str) -> tuple[HostLink | None, list[str]]:
    """Return the link to the host that has the checkpoints, and the hosts that do not answer."""
    silent: list[str] = []
    for name, link in links.items():
        try:
            if _has_checkpoints(link, earlier):
                return link, silent
        except BackendUnavailableError:
            silent.append(name)
    return None, silent


def _carry(owner: HostLink, link: HostLink, earlier: str, carried: Path) -> str:
    """Carry checkpoints from host to host by a folder of their own.

    A transfer that was cut goes on there, and is never taken for all of them.
    """
    fetch(HostDirectory(owner, earlier), wire.CHECKPOINTS, carried)
    there = link.sent.send_checkpoints(carried)
    shutil.rmtree(carried, ignore_errors=True)
    return there


def _has_checkpoints(link: HostLink, job: str) -> bool:
    return are_there(lambda: sizes(HostDirectory(link, job), wire.CHECKPOINTS))

"""Having the data of a trial on its host before it begins: files and folders are sent once per content.

What is there already is named by its path; what has a URL is fetched by the trial itself, into the same cache.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

from jupyter_autotrain.backends.local.trial_directory import changed_error
from jupyter_autotrain.backends.ssh.archive_stream import ProgressCallback, SentFile
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.backends.ssh.sending import FolderManifest
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.data import DataKind, DataSource
from jupyter_autotrain.core.data_manifest import DataManifest
from jupyter_autotrain.core.json import JsonObject, JsonValue, to_json
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import BackendError, BackendUnavailableError
from jupyter_autotrain.worker.data_cache import DEFAULT_LIMIT_BYTES

FOLDER = "data"  # of the cache, in the host's work folder


def place(
    link: HostLink,
    job: str,
    trial: TrialSpec,
    context: BackendContext,
    limit_bytes: int | None = None,
    progress: ProgressCallback | None = None,
) -> JsonObject:
    """Have a trial's data on a host; gives what `trial.json` says about it.

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
    """Send an entry unless it is there; gives the digest that it lies under."""
    folder = _as_sent(manifest)
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
        except (BackendError, OSError) as error:
            if changed := manifest.changed_file():
                raise changed_error(source, changed) from error
            if is_last:
                raise
        else:
            return


def _as_sent(manifest: DataManifest) -> FolderManifest:
    files = tuple(
        SentFile(file.path, file.size_bytes, file.sha256, Path(manifest.root, file.path), file.is_executable)
        for file in manifest.files
    )
    return FolderManifest(files, manifest.folders)

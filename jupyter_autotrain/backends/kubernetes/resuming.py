"""The checkpoints that an attempt goes on from: what has been collected of an earlier one."""

from __future__ import annotations

from jupyter_autotrain.backends.kubernetes.agent_archive import folder_file
from jupyter_autotrain.backends.kubernetes.code_objects import CodeFile
from jupyter_autotrain.backends.kubernetes.tracked_job import collected_folder
from jupyter_autotrain.backends.kubernetes_pod import places
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.spec import TrialSpec


def resume_files(trial: TrialSpec, context: BackendContext) -> dict[str, CodeFile]:
    """The archive of the checkpoints, by its name; empty where there are none."""
    if trial.resume_attempt is None:
        return {}
    earlier = f"{trial.experiment_id}-{trial.number}-{trial.resume_attempt}"
    folder = collected_folder(context.home, earlier) / "0" / "trial" / wire.CHECKPOINTS
    if not folder.is_dir() or not any(folder.iterdir()):
        return {}
    return {places.RESUME_ARCHIVE: folder_file(places.RESUME_ARCHIVE, folder)}

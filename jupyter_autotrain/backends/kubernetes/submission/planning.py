"""All that is sent for a trial, before anything of it is: manifests, files for ConfigMaps, archives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jupyter_autotrain.backends.earlier_checkpoints import from_last_saved, has_saved, in_home
from jupyter_autotrain.backends.kubernetes.following.tracked_job import collected_folder
from jupyter_autotrain.backends.kubernetes.objects.workload import Workload
from jupyter_autotrain.backends.kubernetes.storage import trial_needs
from jupyter_autotrain.backends.kubernetes.storage.code_objects import CodeFile
from jupyter_autotrain.backends.kubernetes.storage.trial_needs import TrialNeeds
from jupyter_autotrain.backends.kubernetes.submission.session import Session
from jupyter_autotrain.backends.kubernetes.submission.trial_program import TrialProgram
from jupyter_autotrain.backends.kubernetes_pod import places
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.spec import TrialSpec


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """What is sent for a trial.

    Attributes:
        program: Gives its manifests.
        shared: Files that other trials may need as well, by their name in `places.CODE`.
        own: Files of this trial alone.
        needs: What has to be sent another way.
        config_maps: The ConfigMap of each file.
    """

    program: TrialProgram
    shared: Mapping[str, CodeFile]
    own: Mapping[str, CodeFile]
    needs: TrialNeeds
    config_maps: Mapping[str, str]


def plan(
    trial: TrialSpec, options: JsonObject, workload: Workload, session: Session, context: BackendContext,
    namespace: str,
) -> TrialPlan:  # fmt: skip
    """Plan a trial; asks no cluster.

    Args:
        trial: The trial.
        options: Of the profile and the header's section.
        workload: The kind of its object.
        session: What the backend holds of its cluster.
        context: The home.
        namespace: Where it runs.

    Raises:
        BackendError: Something is too big, and the profile names no storage.
        DataError: Data was changed since the submission.
    """
    needs = trial_needs.of_trial(trial, context, options, session.ways, _checkpoints(trial, context))
    code = {name: file for name, file in session.files(trial).items() if file.fits}
    shared = {**code, **needs.files}
    names = {name: file.object_name(session.home) for name, file in shared.items()}
    own: dict[str, CodeFile] = {}
    program = TrialProgram(
        trial, options, workload, session.home, namespace, names, more=needs.fields, more_volumes=needs.volumes,
        more_mounts=needs.mounts, more_variables=needs.variables,
    )  # fmt: skip
    if program.is_long:
        own[places.TRIAL_FILE] = CodeFile(places.TRIAL_FILE, program.trial_text().encode())
        names.update((name, file.object_name(session.home)) for name, file in own.items())
        program = program.with_config_maps(names)
    return TrialPlan(program, shared, own, needs, names)


def _checkpoints(trial: TrialSpec, context: BackendContext) -> tuple[int, Path] | None:
    """The last attempt of which the home has checkpoints, and their folder there."""

    def collected(attempt: int) -> Path:
        return collected_folder(context.home, trial.job_id_of(attempt)) / "0" / "trial" / wire.CHECKPOINTS

    found = from_last_saved(trial, context, lambda attempt: has_saved(collected(attempt)))
    if found.resume_attempt is None:
        return None
    folder = collected(found.resume_attempt)
    chosen = folder if has_saved(folder) else in_home(context, found)
    return (found.resume_attempt, chosen) if chosen else None

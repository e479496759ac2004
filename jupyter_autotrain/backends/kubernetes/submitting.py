"""All that is sent for a trial, and the making of it: its own object first, since it owns the others; twice is once."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.backends import travelling_code
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.connection import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.objects import naming
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType, Workload
from jupyter_autotrain.backends.kubernetes.session import Session
from jupyter_autotrain.backends.kubernetes.storage import code_objects, trial_needs
from jupyter_autotrain.backends.kubernetes.storage.code_objects import CodeFile
from jupyter_autotrain.backends.kubernetes.storage.trial_needs import TrialNeeds
from jupyter_autotrain.backends.kubernetes.trial_program import TrialProgram
from jupyter_autotrain.backends.log_channel.collected import saved_checkpoints
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import BackendError, BackendUnavailableError, SubmitUnknownError


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """The plan of a submit.

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
    needs = trial_needs.of_trial(trial, context, options, session.ways, saved_checkpoints(trial, context, "kubernetes"))
    agent = CodeFile(places.AGENT_ARCHIVE, travelling_code.archive().content)
    shared = {agent.name: agent, **needs.files}
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


class Submitter:
    """Makes objects in one namespace.

    Args:
        api: The cluster.
        namespace: The namespace.
    """

    def __init__(self, api: KubernetesApi, namespace: str) -> None:
        self._api = api
        self._namespace = namespace

    def submit(
        self, program: TrialProgram, more: Mapping[str, CodeFile], values: Mapping[str, str]
    ) -> JsonObject:  # fmt: skip
        """Make all objects of a trial, those that are missing; gives its own one.

        Where one of the others is refused, its own is deleted again: it could not run, and would hold its nodes.

        Args:
            program: The trial.
            more: Files of it alone, which its object owns.
            values: The values of its secrets.

        Raises:
            SubmitUnknownError: The cluster stopped to answer meanwhile.
            BackendError: The cluster refuses.
        """
        first, *others = program.manifests().objects
        others += [file.manifest(program.home, self._namespace, program.metadata) for file in more.values()]
        secret = program.secret({**values, wire.TOKEN_VARIABLE: secrets.token_hex(16)})
        others += [secret] if secret is not None else []
        try:
            own = self._make_first(first)
            if own is None:
                own = self._made_before(program)
                self._complete(own, others)
            else:
                self._make_others_or_none(program, own, others)
        except BackendUnavailableError as error:
            raise SubmitUnknownError(error.found, error.expected, error.action) from error
        return own

    def _make_others(self, own: JsonObject, others: Sequence[JsonObject]) -> None:
        owner = code_objects.owner_reference(own)
        for manifest in others:
            self._api.create_unless_there(ObjectType.of(manifest), self._namespace, _owned(manifest, owner))

    def _complete(self, own: JsonObject, others: Sequence[JsonObject]) -> None:
        """Make what is missing beside an object that was there before.

        Raises:
            BackendError: The cluster refuses, which says nothing: a quota may be full by what is there. All stays.
        """
        try:
            self._make_others(own, others)
        except ApiRefusedError as error:
            raise BackendError(error.found, error.expected, error.action) from error

    def _make_others_or_none(self, program: TrialProgram, own: JsonObject, others: Sequence[JsonObject]) -> None:
        try:
            self._make_others(own, others)
        except ApiRefusedError:
            with contextlib.suppress(ApiRefusedError):  # what was refused first is what has to be told
                selector = naming.selector_of_jobs([program.trial.job_id], program.home)
                self._api.delete_collection(program.workload.object_type, self._namespace, selector)
            raise

    def _make_first(self, manifest: JsonObject) -> JsonObject | None:
        """Return the object of a trial, made now; None where it is there already."""
        try:
            return self._api.create(ObjectType.of(manifest), self._namespace, manifest)
        except ApiRefusedError as error:
            if error.reason != "AlreadyExists":
                raise
        return None

    def _made_before(self, program: TrialProgram) -> JsonObject:
        object_type = program.workload.object_type
        found = self._api.get(object_type, self._namespace, program.name)
        if naming.job_label(found) != naming.label_value(program.trial.job_id):
            raise BackendError(
                f"There is another {object_type.kind} {program.name} in the namespace {self._namespace}.",
                "",
                "Delete it, or name another namespace.",
            )
        return found


def _owned(manifest: JsonObject, owner: JsonObject) -> JsonObject:
    metadata = cast("JsonObject", manifest["metadata"])
    return {**manifest, "metadata": {**metadata, "ownerReferences": [owner]}}

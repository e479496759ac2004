"""Making the objects of a trial: its own first, since it owns the others; twice is once."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping, Sequence
from typing import cast

from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.api_errors import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.objects import naming
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.backends.kubernetes.storage import code_objects
from jupyter_autotrain.backends.kubernetes.storage.code_objects import CodeFile
from jupyter_autotrain.backends.kubernetes.submission.trial_program import TrialProgram
from jupyter_autotrain.backends.kubernetes_pod import places
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.errors import BackendError, BackendUnavailableError, SubmitUnknownError

_PLURALS = {"Secret": "secrets", "Service": "services", "ConfigMap": "configmaps", "PodGroup": "podgroups"}


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
        secret = program.secret({**values, places.TOKEN_VARIABLE: secrets.token_hex(16)})
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
            self._api.create_unless_there(type_of(manifest), self._namespace, _owned(manifest, owner))

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
        """The object of a trial, made now; None where it is there already."""
        try:
            return self._api.create(type_of(manifest), self._namespace, manifest)
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


def type_of(manifest: JsonObject) -> ObjectType:
    """The type of a manifest."""
    group, _, version = str(manifest["apiVersion"]).rpartition("/")
    kind = str(manifest["kind"])
    return ObjectType(group, version, _PLURALS.get(kind, f"{kind.lower()}s"), kind)


def _owned(manifest: JsonObject, owner: JsonObject) -> JsonObject:
    metadata = cast("JsonObject", manifest["metadata"])
    return {**manifest, "metadata": {**metadata, "ownerReferences": [owner]}}

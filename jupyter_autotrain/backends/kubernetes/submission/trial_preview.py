"""What is made of a trial, before or without a submit: shown, checked by the cluster, or as text for kubectl."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from jupyter_autotrain.backends.kubernetes.access.api_errors import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.checks import check_steps
from jupyter_autotrain.backends.kubernetes.checks.cluster_checks import CheckedCluster
from jupyter_autotrain.backends.kubernetes.manifests import manifest_text
from jupyter_autotrain.backends.kubernetes.submission.exported_trial import exported_text
from jupyter_autotrain.backends.kubernetes.submission.planning import TrialPlan
from jupyter_autotrain.backends.kubernetes.submission.session import Session
from jupyter_autotrain.backends.kubernetes.submission.trial_program import TrialProgram
from jupyter_autotrain.core.backend import BackendContext, Submission
from jupyter_autotrain.core.backend_check import CheckStep
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import AutotrainError, BackendError

_UNKNOWN_NAMESPACE = "default"  # in what is shown without a cluster
_NOT_FOUND = 404
_TINY = TrialSpec("check", 1, 1)


class TrialPreview:
    """Of the trials of one backend.

    Args:
        session: Its cluster.
        options: Of its profile.
        context: The home.
        plan: Gives what is sent for a trial in a namespace.
    """

    def __init__(
        self,
        session: Session,
        options: JsonObject,
        context: BackendContext,
        plan: Callable[[TrialSpec, str], TrialPlan],
    ) -> None:
        self._session = session
        self._options = options
        self._context = context
        self._plan = plan

    def submission(self, trial: TrialSpec) -> Submission:
        """The manifests, as YAML; needs no cluster."""
        plan = self._plan(trial, str(self._options.get("namespace") or _UNKNOWN_NAMESPACE))
        objects, notes = _objects(plan.program)
        kinds = ", ".join(f"{found['kind']} ({found['apiVersion']})" for found in objects)
        notes.append(f"The cluster was not asked: that it takes {kinds} is checked by --check and at submit.")
        if not self._context.bundle(trial).is_dir():
            notes.append("ConfigMaps with the code, and names after the experiment's id, are made at submit.")
        return Submission(
            argv=("kubectl", "create", "-f", "trial.yaml"),
            files={"trial.yaml": manifest_text.to_yaml(objects)},
            notes=tuple(notes),
        )

    def text(self, trial: TrialSpec) -> str:
        """All objects of a trial as YAML for kubectl, with its code.

        Raises:
            BackendError: The trial cannot run as such objects alone.
        """
        return exported_text(self._plan(trial, self._namespace()))

    def _namespace(self) -> str:
        """That of the profile, else of the context, where there is one."""
        try:
            return self._session.namespace
        except AutotrainError:
            return _UNKNOWN_NAMESPACE

    def check(self, trial: TrialSpec) -> Sequence[str]:
        """Make sure that the cluster would take the trial from this user; gives notes, a line each.

        Raises:
            BackendError: It would not; names all that is missing or wrong.
        """
        cluster = self._cluster(trial)
        objects, notes = _objects(self._plan(trial, cluster.namespace).program)
        return [*notes, *check_steps.check_objects(cluster, objects)]

    def refusal(self, trial: TrialSpec, error: ApiRefusedError) -> BackendError:
        """Return what is told of a submit that the cluster refused: of one that lacks the kind, what a check says."""
        if error.code != _NOT_FOUND:
            return error
        try:
            self.check(trial)
        except BackendError as told:
            return BackendError(told.found, told.expected, told.action)
        return error

    def steps(self) -> Iterator[CheckStep]:
        """The steps of a check before its tiny trial."""

        def render() -> Sequence[JsonObject]:
            return _objects(self._plan(_TINY, self._session.namespace).program)[0]

        return check_steps.check_steps(lambda: self._cluster(_TINY), render)

    def _cluster(self, trial: TrialSpec) -> CheckedCluster:
        options: JsonObject = {**self._options, **trial.options}
        api = self._session.api
        return CheckedCluster(api, api.address, self._session.namespace, options, self._context.home.schemas)


def _objects(program: TrialProgram) -> tuple[list[JsonObject], list[str]]:
    """The objects of a trial, its own one first, without the values of secrets; and what is to be said of them."""
    found = program.manifests()
    secret = program.secret(dict.fromkeys(program.secret_names, "(given at submit)"))
    objects = [*found.objects, *([secret] if secret is not None else [])]
    return objects, list(found.notes)

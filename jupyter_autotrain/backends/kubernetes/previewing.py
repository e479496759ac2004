"""The objects of a trial, before or without a submit: shown, checked by the cluster, or as text for kubectl."""

from __future__ import annotations

import io
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import SafeRepresenter

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.backends.kubernetes.access.connection import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.inventory import check_steps
from jupyter_autotrain.backends.kubernetes.inventory.cluster_checks import CheckedCluster
from jupyter_autotrain.backends.kubernetes.objects import naming
from jupyter_autotrain.backends.kubernetes.session import Session
from jupyter_autotrain.backends.kubernetes.submitting import TrialPlan
from jupyter_autotrain.backends.kubernetes.trial_program import TrialProgram
from jupyter_autotrain.core.backend import BackendContext, Submission
from jupyter_autotrain.core.backend_check import CheckStep
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import AutotrainError, BackendError

_FIRST = ("apiVersion", "kind", "metadata", "name", "namespace")
_PLAIN = re.compile(r"[A-Za-z/][\w./-]*(?::[\w./-]+)?", re.ASCII)
_NO_TEXT = re.compile(r"(?:y|n|yes|no|on|off|true|false|null)", re.IGNORECASE)  # in YAML 1.1 these are no texts
_WIDTH = 4096  # a text on one line stays on one line


class _Representer(SafeRepresenter):
    """Quotes every text that some reader of YAML takes for something else."""


def _text(representer: SafeRepresenter, value: str) -> ScalarNode:
    style = None if _PLAIN.fullmatch(value) and not _NO_TEXT.fullmatch(value) else '"'
    if "\n" in value and value.isprintable() is False and all(c.isprintable() or c == "\n" for c in value):
        style = "|"
    node: ScalarNode = representer.represent_scalar("tag:yaml.org,2002:str", value, style=style)
    return node


_Representer.add_representer(str, _text)


def to_yaml(objects: Iterable[JsonObject]) -> str:
    """Return the documents of some objects, each after a line `---`."""
    writer = YAML(typ="safe", pure=True)
    writer.Representer = _Representer
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # its own annotation is None
    writer.width = _WIDTH
    text = io.StringIO()
    for found in objects:
        text.write("---\n")
        writer.dump(_ordered(found), text)
    return text.getvalue()


def _ordered(value: JsonValue) -> JsonValue:
    """Return it with the keys that say what it is before the others."""
    if isinstance(value, Mapping):
        keys = [key for key in _FIRST if key in value] + [key for key in value if key not in _FIRST]
        return {key: _ordered(value[key]) for key in keys}
    if isinstance(value, list | tuple):
        return list(map(_ordered, value))
    return value


HOME = "exported"  # of no home, so that no manager takes the objects for its own, or for leftovers
_GIVEN = "(to be filled in)"
_HEAD = """\
# Trial {trial}: kubectl apply -f THIS_FILE -n {namespace}
# What it prints, its metrics and its small files are lines of its log: kubectl logs -n {namespace} -l {selector}
# Delete it: kubectl delete -f THIS_FILE
"""


def exported_text(plan: TrialPlan) -> str:
    """Return the YAML of all objects of a trial: ConfigMaps first, the trial's own object last.

    Raises:
        BackendError: Something of it does not fit into an object of the cluster.
    """
    if any(archive.file is None for archive in plan.needs.archives):
        raise BackendError(
            "Code, data or checkpoints of this trial are more than objects of a cluster hold (1 MiB).",
            "Expected less: what is more goes by the profile's `storage:`, which kubectl does not fill.",
            "Ship less (`ship:`), name data that is there already under `data:`, or submit the trial.",
        )
    files = {**plan.shared, **plan.own}
    trial = plan.program.trial
    names = {name: file.object_name(HOME) for name, file in files.items()}
    own = replace(plan.program, home=HOME, config_maps=names)
    objects: list[JsonObject] = [file.manifest(HOME, own.namespace, own.metadata) for file in files.values()]
    secret = own.secret({**dict.fromkeys(trial.secrets, _GIVEN), wire.TOKEN_VARIABLE: secrets.token_hex(16)})
    if secret is not None:
        objects.append(secret)
    first, *others = own.manifests().objects
    return _head(own) + to_yaml([*objects, *others, first])


def _head(program: TrialProgram) -> str:
    trial = program.trial
    selector = f"{naming.LABEL_JOB}={naming.label_value(trial.job_id)}"
    head = _HEAD.format(trial=trial.job_id, namespace=program.namespace, selector=selector)
    if trial.secrets:
        head += f"# Fill in the values of {', '.join(trial.secrets)} in the Secret {program.name} first.\n"
    return head


_UNKNOWN_NAMESPACE = "default"  # in what is shown without a cluster
_NOT_FOUND = 404
_TINY = TrialSpec("check", 1, 1)


class TrialPreview:
    """The previews of one backend's trials.

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
        """Return the manifests, as YAML; needs no cluster."""
        plan = self._plan(trial, str(self._options.get("namespace") or _UNKNOWN_NAMESPACE))
        objects, notes = _objects(plan.program)
        kinds = ", ".join(f"{found['kind']} ({found['apiVersion']})" for found in objects)
        notes.append(f"The cluster was not asked: that it takes {kinds} is checked by --check and at submit.")
        if not self._context.bundle(trial).is_dir():
            notes.append("ConfigMaps with the code, and names after the experiment's id, are made at submit.")
        return Submission(
            argv=("kubectl", "create", "-f", "trial.yaml"),
            files={"trial.yaml": to_yaml(objects)},
            notes=tuple(notes),
        )

    def text(self, trial: TrialSpec) -> str:
        """Return all objects of a trial as YAML for kubectl, with its code.

        Raises:
            BackendError: The trial cannot run as such objects alone.
        """
        return exported_text(self._plan(trial, self._namespace()))

    def _namespace(self) -> str:
        """Return that of the profile, else of the context, where there is one."""
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
        return [*notes, *check_steps.check_trial(cluster, objects)]

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
        """Return the steps of a check before its tiny trial."""

        def render() -> Sequence[JsonObject]:
            return _objects(self._plan(_TINY, self._session.namespace).program)[0]

        return check_steps.check_steps(lambda: self._cluster(_TINY), render)

    def _cluster(self, trial: TrialSpec) -> CheckedCluster:
        options: JsonObject = {**self._options, **trial.options}
        api = self._session.api
        return CheckedCluster(api, api.address, self._session.namespace, options)


def _objects(program: TrialProgram) -> tuple[list[JsonObject], list[str]]:
    """Return the objects of a trial, its own one first, without values of secrets; and what is to be said of them."""
    found = program.manifests()
    secret = program.secret(dict.fromkeys(program.secret_names, "(given at submit)"))
    objects = [*found.objects, *([secret] if secret is not None else [])]
    return objects, list(found.notes)

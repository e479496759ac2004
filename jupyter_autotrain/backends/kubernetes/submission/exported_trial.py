"""A trial as text for kubectl: all its objects with the code that they run, and no values of secrets."""

from __future__ import annotations

import secrets
from dataclasses import replace

from jupyter_autotrain.backends.kubernetes.manifests import manifest_text
from jupyter_autotrain.backends.kubernetes.objects import naming
from jupyter_autotrain.backends.kubernetes.submission.planning import TrialPlan
from jupyter_autotrain.backends.kubernetes.submission.trial_program import TrialProgram
from jupyter_autotrain.backends.kubernetes_pod import places
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.errors import BackendError

HOME = "exported"  # of no home, so that no manager takes the objects for its own, or for leftovers
_GIVEN = "(to be filled in)"
_HEAD = """\
# Trial {trial}: kubectl apply -f THIS_FILE -n {namespace}
# What it prints, its metrics and its small files are lines of its log: kubectl logs -n {namespace} -l {selector}
# Delete it: kubectl delete -f THIS_FILE
"""


def exported_text(plan: TrialPlan) -> str:
    """The YAML of all objects of a trial: ConfigMaps first, the trial's own object last.

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
    secret = own.secret({**dict.fromkeys(trial.secrets, _GIVEN), places.TOKEN_VARIABLE: secrets.token_hex(16)})
    if secret is not None:
        objects.append(secret)
    first, *others = own.manifests().objects
    return _head(own) + manifest_text.to_yaml([*objects, *others, first])


def _head(program: TrialProgram) -> str:
    trial = program.trial
    selector = f"{naming.LABEL_JOB}={naming.label_value(trial.job_id)}"
    head = _HEAD.format(trial=trial.job_id, namespace=program.namespace, selector=selector)
    if trial.secrets:
        head += f"# Fill in the values of {', '.join(trial.secrets)} in the Secret {program.name} first.\n"
    return head

"""Names and labels of what is ours in a cluster: by them everything is found again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from jupyter_autotrain.core import home_identity
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.json import JsonObject

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "jupyter-autotrain"
LABEL_HOME = "jupyter-autotrain/home"
LABEL_JOB = "jupyter-autotrain/job"
LABEL_EXPERIMENT = "jupyter-autotrain/experiment"
LABEL_TRIAL = "jupyter-autotrain/trial"
LABEL_ATTEMPT = "jupyter-autotrain/attempt"
LABEL_CODE = "jupyter-autotrain/code"
LABELS = frozenset({MANAGED_BY, LABEL_HOME, LABEL_JOB, LABEL_EXPERIMENT, LABEL_TRIAL, LABEL_ATTEMPT})  # of a trial
LONGEST_NAME = 63  # of a label's value, and of a Service, whose name is a part of a host's
_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DIGEST_DIGITS = 10


def label_value(text: str) -> str:
    """A text as the value of a label: itself where it may be one, else its beginning with a digest."""
    if len(text) <= LONGEST_NAME and _VALUE.fullmatch(text):
        return text
    begin = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[: LONGEST_NAME - _DIGEST_DIGITS - 1].strip("-")
    return f"{begin}-{_digest(text)}" if begin else _digest(text)


def user_of_storage(home: Home, experiment: str) -> str:
    """Who uses what lies in a storage: HOME/EXPERIMENT."""
    return f"{home_identity.identity(home)}/{label_value(experiment)}"


def labels_of(job_id: str, home: str) -> dict[str, str]:
    """The labels of all objects of a trial."""
    experiment, number, attempt = job_id.rsplit("-", 2)
    return {
        MANAGED_BY: MANAGER, LABEL_HOME: home, LABEL_JOB: label_value(job_id),
        LABEL_EXPERIMENT: label_value(experiment), LABEL_TRIAL: number, LABEL_ATTEMPT: attempt,
    }  # fmt: skip


def selector_of_home(home: str) -> str:
    """What selects everything of a home."""
    return f"{MANAGED_BY}={MANAGER},{LABEL_HOME}={home}"


def selector_of_jobs(job_ids: Iterable[str], home: str) -> str:
    """What selects everything of some jobs."""
    values = ",".join(sorted(label_value(job_id) for job_id in job_ids))
    return f"{selector_of_home(home)},{LABEL_JOB} in ({values})"


def job_label(found: JsonObject) -> str:
    """The value of the label that says which job an object belongs to; "" where it has none."""
    return label(found, LABEL_JOB)


def label(found: JsonObject, name: str) -> str:
    """A label of an object; "" where it has none."""
    metadata = found.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return str(labels.get(name) or "") if isinstance(labels, dict) else ""


def name_of(found: JsonObject) -> str:
    """The name of an object."""
    metadata = found.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""


def uid_of(found: JsonObject) -> str:
    """The uid of an object."""
    metadata = found.get("metadata")
    return str(metadata.get("uid") or "") if isinstance(metadata, dict) else ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_DIGITS]

"""Names and labels of what is ours in a cluster: by them everything is found again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.core.home import Home, home_identity

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "jupyter-autotrain"
LABEL_HOME = "jupyter-autotrain/home"
LABEL_JOB = "jupyter-autotrain/job"
LABEL_EXPERIMENT = "jupyter-autotrain/experiment"
LABEL_TRIAL = "jupyter-autotrain/trial"
LABEL_ATTEMPT = "jupyter-autotrain/attempt"
LABELS = frozenset({MANAGED_BY, LABEL_HOME, LABEL_JOB, LABEL_EXPERIMENT, LABEL_TRIAL, LABEL_ATTEMPT})  # of a trial
LONGEST_NAME = 63  # of a label's value, and of a Service, whose name is a part of a host's
_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DIGEST_DIGITS = 10


def label_value(text: str) -> str:
    """Return a text as the value of a label: itself where it may be one, else its beginning with a digest."""
    if len(text) <= LONGEST_NAME and _VALUE.fullmatch(text):
        return text
    begin = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[: LONGEST_NAME - _DIGEST_DIGITS - 1].strip("-")
    return f"{begin}-{_digest(text)}" if begin else _digest(text)


def user_of_storage(home: Home, experiment: str) -> str:
    """Return the name of an experiment as a user of a storage: HOME/EXPERIMENT."""
    return f"{home_identity(home)}/{label_value(experiment)}"


def labels_of(job_id: str, home: str) -> dict[str, str]:
    """Return the labels of all objects of a trial."""
    experiment, number, attempt = job_id.rsplit("-", 2)
    return {
        MANAGED_BY: MANAGER, LABEL_HOME: home, LABEL_JOB: label_value(job_id),
        LABEL_EXPERIMENT: label_value(experiment), LABEL_TRIAL: number, LABEL_ATTEMPT: attempt,
    }  # fmt: skip


def selector_of_home(home: str) -> str:
    """Return what selects everything of a home."""
    return f"{MANAGED_BY}={MANAGER},{LABEL_HOME}={home}"


def selector_of_jobs(job_ids: Iterable[str], home: str) -> str:
    """Return what selects everything of some jobs."""
    values = ",".join(sorted(map(label_value, job_ids)))
    return f"{selector_of_home(home)},{LABEL_JOB} in ({values})"


def job_label(found: JsonObject) -> str:
    """Return the value of the label that says which job an object belongs to; "" where it has none."""
    return label(found, LABEL_JOB)


def label(found: JsonObject, name: str) -> str:
    """Return a label of an object; "" where it has none."""
    metadata = found.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return str(labels.get(name) or "") if isinstance(labels, dict) else ""


def name_of(found: JsonObject) -> str:
    """Return the name of an object."""
    metadata = found.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""


def uid_of(found: JsonObject) -> str:
    """Return the uid of an object."""
    metadata = found.get("metadata")
    return str(metadata.get("uid") or "") if isinstance(metadata, dict) else ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_DIGITS]


_DIGEST = 10


def dns_label(job_id: str, home: str, longest: int) -> str:
    """Return a name of small letters, digits and dashes that begins with a letter (RFC 1035).

    Args:
        job_id: The job; as much of it as fits is kept for readers.
        home: The identity of the home, so that the jobs of two homes in one namespace differ.
        longest: How many characters it may have.
    """
    digest = hashlib.sha256(f"{home}\n{job_id}".encode()).hexdigest()[:_DIGEST]
    told = re.sub(r"[^a-z0-9]+", "-", job_id.lower()).strip("-")
    if not told[:1].isalpha():
        told = f"at-{told}"
    kept = told[: longest - _DIGEST - 1].rstrip("-")
    return f"{kept}-{digest}"


def plain_label(job_id: str, home: str, longest: int) -> str:
    """Return a name of small letters and digits alone, for kinds that allow no dashes; see `dns_label`."""
    digest = hashlib.sha256(f"{home}\n{job_id}".encode()).hexdigest()[:_DIGEST]
    told = re.sub(r"[^a-z0-9]+", "x", job_id.lower()).strip("x")
    return f"at{told[: longest - _DIGEST - 3]}x{digest}"

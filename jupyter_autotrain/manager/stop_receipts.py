"""Which processes a stop ended, also when the manager that began it has ended: each trial's status holds it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping

from jupyter_autotrain.core.backend import CancelReceipt, JobRef, receipt_of
from jupyter_autotrain.core.json import JsonValue
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.manager.context import ManagerContext

_KINDS = ("pids_ended", "pids_killed", "pids_left")
_log = logging.getLogger(__name__)


def receipts_since(
    context: ManagerContext, record: ExperimentRecord, numbers: Collection[int] | None, since_s: float
) -> dict[int, CancelReceipt]:
    """The receipts of trials that ended after a stop was requested and before it was handled.

    Args:
        context: The home.
        record: The experiment.
        numbers: The trials meant; None means all.
        since_s: When the stop was requested.
    """
    refs: dict[str, dict[int, JobRef]] = {}
    for trial in context.retry_store(context.store.trials, record.id):
        ended = trial.state.is_final and trial.ended_s is not None and trial.ended_s >= since_s
        if ended and trial.ref is not None and (numbers is None or trial.number in numbers):
            refs.setdefault(trial.placement.backend, {})[trial.number] = trial.ref
    found: dict[int, CancelReceipt] = {}
    for backend, jobs in refs.items():
        found |= _receipts(context, record, backend, jobs)
    return found


def _receipts(
    context: ManagerContext, record: ExperimentRecord, backend: str, refs: Mapping[int, JobRef]
) -> dict[int, CancelReceipt]:
    """The receipts of jobs on one backend, by trial."""
    try:
        statuses = context.open_backend(record.spec.choice(backend).profile).poll([*refs.values()])
    except Exception:  # noqa: BLE001 - whatever a plugin raises: then the processes that ended are not known
        _log.exception("%s: the receipts of its trials cannot be read", record.label)
        return {}
    return {number: receipt_of(status.detail) for number, status in zip(refs, statuses, strict=True)}


def merge(receipts: Iterable[CancelReceipt]) -> dict[str, JsonValue]:
    """The processes of several receipts, each once."""
    found: dict[str, set[int]] = {kind: set() for kind in _KINDS}
    for receipt in receipts:
        for kind in _KINDS:
            found[kind].update(getattr(receipt, kind))
    return {kind: sorted(pids) for kind, pids in found.items()}

"""Which trials are on nodes that do not answer: one sentence per node, for every view, and one per trial."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_autotrain.core.records import UnreachableNode
from jupyter_autotrain.core.text_format import clock_time
from jupyter_autotrain.manager.attempt import Attempt
from jupyter_autotrain.manager.experiment_run import ExperimentRun


def find(run: ExperimentRun, backends: Mapping[str, str], now_s: float) -> list[UnreachableNode]:
    """The nodes with trials of an experiment that do not answer, by name.

    Args:
        run: The experiment.
        backends: Why a backend as a whole does not answer, by its name.
        now_s: The wall clock, for those that are new.
    """
    trials: dict[str, int] = {}
    for attempt in run.attempts.values():
        if attempt.unreachable or attempt.placement.backend in backends:
            name = node_name(attempt)
            trials[name] = trials.get(name, 0) + 1
    since_s = {node.name: node.since_s for node in run.published.nodes}
    return [UnreachableNode(name, since_s.get(name, now_s), trials[name]) for name in sorted(trials)]


def block_reasons(run: ExperimentRun, backends: Mapping[str, str], nodes: list[UnreachableNode]) -> dict[int, str]:
    """Of each trial on such a node: the rest of a sentence that begins with the trial."""
    since_s = {node.name: node.since_s for node in nodes}
    reasons = {}
    for number, attempt in run.attempts.items():
        reason = backends.get(attempt.placement.backend, attempt.unreachable)
        if reason:
            name = node_name(attempt)
            since = clock_time(since_s[name])
            cause = "" if "not answer" in reason else f": {reason}"
            reasons[number] = f"is on {name}, which does not answer since {since}{cause}"
    return reasons


def node_name(attempt: Attempt) -> str:
    """The nodes that an attempt is on; its backend where they are not known."""
    return ", ".join(placed.node for placed in attempt.placement.nodes) or attempt.placement.backend

"""Reasons from what a real cluster said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_autotrain.backends.kubernetes.reasons import scheduling_reasons

RECORDED = Path(__file__).parents[3] / "kubernetes" / "recorded" / "events.json"
EVENTS = json.loads(RECORDED.read_text())
UNSCHEDULED = [event["message"] for event in EVENTS if event["reason"] == "FailedScheduling"]
NOT_A_USERS = ("claims to deallocate", "preemption", "Preemption", "incoming pod", "0/1 nodes")


@pytest.mark.parametrize("message", UNSCHEDULED)
def test_what_the_scheduler_said_is_told_in_a_users_words(message: str) -> None:
    told = scheduling_reasons.sentence(message, {})
    assert not [words for words in NOT_A_USERS if words in told], told


def test_the_clause_of_resource_claims_hides_no_reason() -> None:
    told = {scheduling_reasons.sentence(message, {}) for message in UNSCHEDULED if "Insufficient cpu" in message}
    assert told == {"waits for a node with room: 0 of 1 node can take it (1 has too few free CPUs)"}

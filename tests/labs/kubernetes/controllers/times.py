"""Points in time as objects say them, and conditions."""

from __future__ import annotations

import calendar
import time
from collections.abc import Iterable

from tests.labs.kubernetes.objects.values import Json


def stamp(seconds: float) -> str:
    """Return a time in seconds since the epoch, as in metadata and status."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def seconds_of(text: str) -> float:
    """Return the time that `stamp` wrote."""
    return float(calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ")))


def with_condition(conditions: Iterable[Json], condition: Json, now: float) -> list[Json]:
    """Return the conditions with one set: its transition time changes with its status only."""
    others = [dict(found) for found in conditions]
    for number, found in enumerate(others):
        if found["type"] == condition["type"]:
            changed = found["status"] != condition["status"]
            since = stamp(now) if changed else found.get("lastTransitionTime", stamp(now))
            others[number] = {**condition, "lastTransitionTime": since}
            return others
    return [*others, {**condition, "lastTransitionTime": stamp(now)}]


class Conditions:
    """The conditions of an object while a controller looks at it.

    Attributes:
        entries: As its status lists them.
    """

    def __init__(self, entries: Iterable[Json], now: float) -> None:
        self.entries = list(entries)
        self._now = now

    def find(self, kind: str) -> Json | None:
        """One of them."""
        return condition_of({"status": {"conditions": self.entries}}, kind)

    def is_true(self, kind: str) -> bool:
        """Return whether there is one, and its status is True."""
        return (self.find(kind) or {}).get("status") == "True"

    def set(self, kind: str, status: str, reason: str, message: str) -> None:
        """Set one."""
        condition = {"type": kind, "status": status, "reason": reason, "message": message}
        self.entries = with_condition(self.entries, condition | {"lastProbeTime": stamp(self._now)}, self._now)


def condition_of(found: Json, kind: str) -> Json | None:
    """Return a condition of an object's status."""
    for condition in found.get("status", {}).get("conditions", ()):
        if condition["type"] == kind:
            return dict(condition)
    return None

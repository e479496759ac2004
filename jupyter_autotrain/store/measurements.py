"""Measured steps of plans, kept when their experiments are deleted; see the migration in `schema` that fills them."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from jupyter_autotrain.agent.json import from_json
from jupyter_autotrain.core.measurement import Measurement
from jupyter_autotrain.store.mixin import StoreMixin

MOST: Final = 500  # of the newest, that are looked at


class PlacedMeasurement(NamedTuple):
    """A measurement with the place where its trial ran, and when it came, in seconds since the epoch."""

    place: str
    time_s: float
    measured: Measurement


class MeasurementTable(StoreMixin):
    """The measured steps of plans."""

    def measurements(self) -> list[PlacedMeasurement]:
        """Return the newest measurements first; what trials have told that is none is left out."""
        query = f"SELECT place, time_s, measured FROM measurements ORDER BY id DESC LIMIT {MOST}"  # noqa: S608 - a number
        with self._database.read() as connection:
            rows = connection.execute(query).fetchall()
        return [PlacedMeasurement(place, time_s, one) for place, time_s, text in rows if (one := _measurement(text))]


def _measurement(text: str) -> Measurement | None:
    """Return what a trial has told; None where it is no measurement, since trials may write anything."""
    try:
        found = from_json(Measurement, json.loads(text))
        _ = found.error, found.memory_error
    except (ValueError, TypeError, KeyError, ArithmeticError, AttributeError, RecursionError):
        return None
    return found

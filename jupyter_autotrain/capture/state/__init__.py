"""What earlier cells changed that is no variable: settings of libraries, their random generators, their attributes.

`touches` finds in the cells' text what was called and set, `uses` says which libraries a trial uses. Where the live
value can be read, it is what counts (`settings`, `generators`, `own_values`, `attributes`); other calls are made again
as they were written, or told (`calls`).
"""

from __future__ import annotations

import ast

from jupyter_autotrain.capture.items import LATEST, Item
from jupyter_autotrain.capture.slice import Slice
from jupyter_autotrain.capture.state import attributes, calls, generators, own_values, settings, touches, uses


def carry(slice_: Slice, code: ast.Module, seed: int | None) -> None:
    """Add to a slice what sets the state of libraries again, and tell what is not carried.

    Args:
        slice_: The captured names, followed.
        code: The cell's code.
        seed: What trials seed all random generators with, if anything.
    """
    found = touches.find(slice_.history.cells, slice_.namespace)
    used = uses.of(slice_.items.values(), code, (one.modules for one in slice_.values.pickles.values()))
    done = [*settings.carry(found, used)]
    values = [*own_values.carry(found, used)]
    done += [(item, difference) for _, item, difference in values]
    done += attributes.carry(found, used, slice_, [path for path, _, _ in values])
    done += calls.carry(found, used, slice_, [path for path, _, _ in values])
    for item, difference in done:
        if item is not None:
            slice_.take(item)
        if difference is not None:
            slice_.differences.append(difference)
    _carry_generators(slice_, generators.carry(found, used, seed))


def _carry_generators(slice_: Slice, carried: generators.Carried) -> None:
    slice_.differences += carried.differences
    if carried.text:
        slice_.values.files.update(carried.states)
        slice_.take(Item("random generators", "state", carried.text, position=LATEST))

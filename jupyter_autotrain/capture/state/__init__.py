"""What earlier cells changed that is no variable: settings of libraries, their random generators, their attributes.

`effects` finds in the cells' text what was called and set, `uses` says which libraries a trial uses. Where the live
value can be read, it is what counts (`settings`, `generators`, `own_values`, `attributes`); other calls are made again
as they were written, or reported (`calls`). `environment` is for variables of the process, `hash_order`
for the order of sets.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass

from jupyter_autotrain.capture.items import LATEST, Item
from jupyter_autotrain.capture.slice import Slice
from jupyter_autotrain.capture.state import (
    attributes,
    calls,
    effects,
    environment,
    generators,
    hash_order,
    own_values,
    registrations,
    settings,
    signals,
    statements,
    uses,
)


@dataclass(frozen=True, slots=True)
class HeaderOptions:
    """What trials get by the header.

    Attributes:
        seed: What they seed all random generators with, if anything.
        variables: Names and patterns of environment variables.
        has_data: Whether they find the paths of a section `data:`.
    """

    seed: int | None = None
    variables: Collection[str] = ()
    has_data: bool = False


def restore_code(slice_: Slice, code: ast.Module, options: HeaderOptions) -> None:
    """Add to a slice what sets the state of libraries again, and report what is not carried.

    Args:
        slice_: The captured names, followed.
        code: The cell's code.
        options: What trials get by the header.
    """
    found = effects.find(slice_.history.cells, slice_.namespace)
    registrations.include(found, slice_, code)
    written = [item for item in slice_.items.values() if item.how in {"import", "source"} and item.text]
    trees = [code, *(ast.parse(item.text) for item in written)]
    used = uses.of(trees, (one.modules for one in slice_.values.pickles.values()))
    values = [*own_values.restore_code(found, used)]
    paths = [path for path, _, _ in values]
    done = [
        *environment.restore_code(found, slice_.history.cells, trees, statements.aliases_in(trees), options.variables),
        *settings.restore_code(found, used),
        *((item, difference) for _, item, difference in values),
        *attributes.restore_code(found, used, slice_, paths),
        *calls.restore_code(found, used, slice_, paths),
        *signals.restore_code(slice_),
    ]
    for item, difference in done:
        if item is not None:
            slice_.take(item)
        if difference is not None:
            slice_.differences.append(difference)
    same_seed = options.seed is None and environment.has_fixed_hashes(found, slice_.history.cells)
    slice_.differences += hash_order.find(trees, slice_.namespace, same_seed=same_seed)
    _add_generators(slice_, generators.restore_code(found, used, options.seed))


def _add_generators(slice_: Slice, carried: generators.RestoredState) -> None:
    slice_.differences += carried.differences
    if carried.text:
        slice_.values.files.update(carried.states)
        slice_.take(Item("random generators", "state", carried.text, position=LATEST))

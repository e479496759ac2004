"""What earlier cells changed that is no variable: settings of libraries, their random generators, their attributes.

`effects` finds in the cells' text what was called and set, `uses` says which libraries a trial uses. Where the live
value can be read, it is what counts (`settings`, `generators`, `own_values`, `attributes`); other calls are made again
as they were written, or reported (`calls`). `environment` is for variables of the process, `hash_order`
for the order of sets.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from jupyter_autotrain.capture import pickled_code
from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.files import modules
from jupyter_autotrain.capture.items import EARLIEST, Item
from jupyter_autotrain.capture.slice import Slice
from jupyter_autotrain.capture.state import (
    attributes,
    calls,
    effects,
    environment,
    generators,
    hash_order,
    own_modules,
    registrations,
    settings,
    signals,
    statements,
    under_way,
    uses,
)
from jupyter_autotrain.capture.state.paths import import_text, top


@dataclass(frozen=True, slots=True)
class HeaderOptions:
    """What trials get by the header.

    Attributes:
        seed: What they seed all random generators with, if anything.
        trials: How many there will be.
        variables: Names and patterns of environment variables.
        has_data: Whether they find the paths of a section `data:`.
    """

    seed: int | None = None
    trials: int = 1
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
    trees = [code, *(ast.parse(item.text) for item in written), *pickled_code.trees(slice_.values.codes)]
    used = uses.of(trees, (one.modules for one in slice_.values.pickles.values()))
    _load(trees, written, used, slice_)
    paths = attributes.restore(found, used, slice_)
    done = [
        *environment.restore_code(slice_.history.cells, trees, statements.aliases_in(trees), options.variables),
        *settings.restore_code(found, used),
        *calls.restore_code(found, used, slice_, paths),
        *signals.restore_code(slice_),
    ]
    for item, difference in done:
        if item is not None:
            slice_.take(item)
        if difference is not None:
            slice_.differences.append(difference)
    same_seed = options.seed is None and environment.has_fixed_hashes()
    slice_.differences += hash_order.find(trees, slice_.namespace, same_seed=same_seed)
    own = [name for name in used.own if top(name) in used.direct]
    slice_.differences += [_edited(path) for path in own_modules.edited(own)]
    slice_.differences += under_way.find(slice_.namespace, uses_torch=used.reaches("torch"))
    generators.restore(slice_, used, options.seed, options.trials)


def _load(trees: Iterable[ast.Module], written: Iterable[Item], used: uses.UsedLibraries, slice_: Slice) -> None:
    """Import what the code itself imports of the modules beside the notebook before any state is set, as was done here.

    What they set and draw when they are imported would come after it otherwise.
    """
    imported = {name for tree in trees for name in modules.imported(tree)}
    imported -= {name for item in written if item.how == "import" for name in modules.imported(ast.parse(item.text))}
    text = "\n".join(import_text(name) for name in used.own if name in imported)
    if text:
        slice_.take(Item("modules beside the notebook", "state", text, position=EARLIEST))


def _edited(path: Path) -> Difference:
    text = f"{path.name} as it was imported: trials run it as it is now; reload the module or restart the kernel"
    return Difference(DifferenceKind.NOT_CARRIED, text)

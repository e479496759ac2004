"""Changes by earlier cells that are no variable: settings of libraries, their random generators, their attributes.

`effects` finds in the cells' text what was called and set, `libraries` says which libraries a trial uses. Settings and
generators are read as they are and set again (`settings`, `generators`); all else that cells have changed is reported
with those cells (`library_changes`, `own_values`), which run first where the header says so. `environment` is for
variables of the process, `hash_order` for the order of sets.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from jupyter_autotrain.capture import unnamed
from jupyter_autotrain.capture.differences import Difference, not_carried
from jupyter_autotrain.capture.files import modules
from jupyter_autotrain.capture.items import EARLIEST, Item
from jupyter_autotrain.capture.slice import Slice
from jupyter_autotrain.capture.state import (
    effects,
    environment,
    generators,
    hash_order,
    libraries,
    library_changes,
    own_values,
    process_state,
    settings,
)
from jupyter_autotrain.capture.state.paths import import_text, top
from jupyter_autotrain.core.text_format import cut

_SHOWN = 90


def restore_code(slice_: Slice, code: ast.Module) -> None:
    """Add to a slice what sets the state of libraries again, and report what is not carried.

    Args:
        slice_: The captured names, followed.
        code: The cell's code.
    """
    found = effects.find(slice_.history.cells, slice_.namespace)
    written = [item for item in slice_.items.values() if item.how in {"import", "setup", "source"} and item.text]
    trees = [code, *(ast.parse(item.text) for item in written), *unnamed.trees(slice_.values.codes)]
    used = libraries.of(trees, (one.modules for one in slice_.values.pickles.values()))
    _load(trees, written, used, slice_)
    _set_again(found, trees, used, slice_)
    slice_.differences += _changes(found, used, slice_)
    if slice_.options.seed is not None or not environment.has_fixed_hashes():
        slice_.differences += hash_order.find(trees, slice_.namespace)
    own = [name for name in used.own if top(name) in used.direct]
    slice_.differences += list(map(_edited, libraries.edited(own)))
    slice_.differences += process_state.find(slice_.namespace, uses_torch=used.reaches("torch"))
    generators.restore(slice_, used, trees)


def _set_again(
    found: Sequence[effects.Effect], trees: Sequence[ast.Module], used: libraries.UsedLibraries, slice_: Slice
) -> None:
    """Take in what sets variables of the process and settings of libraries as they are here."""
    given = slice_.options.variables
    done = [
        *environment.restore_code(slice_.history.cells, trees, effects.aliases_in(trees), given),
        *settings.restore_code(found, used),
        *process_state.restore_code(slice_),
    ]
    for item, difference in done:
        if item is not None:
            slice_.take(item)
        if difference is not None:
            slice_.differences.append(difference)
    slice_.differences += [*library_changes.ran_first(slice_.items.values())]


def _changes(found: Sequence[effects.Effect], used: libraries.UsedLibraries, slice_: Slice) -> Iterator[Difference]:
    """Yield what cells have changed besides settings, each with the line of the header that runs these cells first."""
    setup = set(slice_.options.setup)
    told = {text: cells for text, cells in _changed(found, used, slice_) if not cells or not setup.issuperset(cells)}
    needed = sorted(setup.union(*told.values()))
    for text, cells in told.items():
        label = next((cell.label for cell in slice_.history.cells if cell.number in cells[-1:]), "")
        advice = library_changes.proposal(needed) if cells else "set it in the cell"
        yield not_carried(f"{text}: {advice}", label)
    for effect in library_changes.maybe_setting(found, used, slice_):
        advice = library_changes.proposal([*setup, effect.cell.number])
        yield not_carried(f"{library_changes.shown(effect)}, if it sets anything: {advice}", effect.cell.label)


def _changed(
    found: Sequence[effects.Effect], used: libraries.UsedLibraries, slice_: Slice
) -> Iterable[tuple[str, list[int]]]:
    """Return what cells have changed, each with the numbers of these cells."""
    cells = slice_.history.cells
    told = dict[str, list[int]]()
    for effect in library_changes.by_text(found, used):
        told.setdefault(cut(ast.unparse(effect.target), _SHOWN), []).append(effect.cell.number)
    known = {text.rpartition(".")[2] for text in told}
    for path, name in library_changes.found(used, slice_.namespace):
        if name not in known:
            told[path] = effects.cells_naming([name], cells, in_texts=True)[-1:]
    for path, module in own_values.changed(used, slice_.namespace):
        if path.rpartition(".")[2] not in known:
            told[path] = effects.cells_naming(effects.names_from(module, slice_.namespace), cells)
    for effect in library_changes.setting(found, used, slice_):
        told.setdefault(library_changes.shown(effect), []).append(effect.cell.number)
    return told.items()


def _load(trees: Iterable[ast.Module], written: Iterable[Item], used: libraries.UsedLibraries, slice_: Slice) -> None:
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
    return not_carried(text)

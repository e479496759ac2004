"""The reasons that stop a capture: names that are absent or ambiguous, values that cannot travel or are too big.

Of what is too big, a table tells the largest parts.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.capture.name_conflicts import NameConflict
from jupyter_autotrain.capture.slice import Slice
from jupyter_autotrain.capture.syntax.history import Binding, History
from jupyter_autotrain.capture.values.data import PickledValues
from jupyter_autotrain.capture.values.unpicklable import COMPUTED, name_in
from jupyter_autotrain.core.spec import DATA
from jupyter_autotrain.core.text_format import closest_match, count, cut
from jupyter_autotrain.errors import CaptureError


@dataclass(frozen=True, slots=True)
class CaptureLimits:
    """The amounts that may travel: data by pickle, files by copy."""

    data_bytes: int = 200_000_000
    files: int = 2_000
    file_bytes: int = 300_000_000


# A table of sizes as text


def tree(sizes: Mapping[str, int], *, rows: int = 3) -> str:
    """Return the largest entries of a table of sizes, one line each, and the sum of the rest."""
    largest = sorted(sizes.items(), key=lambda entry: (-entry[1], entry[0]))
    lines = [f"  {format_bytes(size):>8}  {name}" for name, size in largest[:rows]]
    if rest := largest[rows:]:
        lines.append(f"  {format_bytes(sum(size for _, size in rest)):>8}  in {len(rest)} more")
    return "\n".join(lines)


_SHOWN = 3
_NODES_AT_MOST = 10_000
_WIDTH = 60


def raise_first(slice_: Slice, limit_bytes: int) -> None:
    """Raise the first kind of fault: what `data` means, missing names, then what cannot travel, then size.

    Args:
        slice_: The captured names.
        limit_bytes: How much data may travel.

    Raises:
        CaptureError: There is one.
    """
    for conflict in slice_.provided.conflicts:
        if conflict.name == DATA:
            raise _two_meanings(conflict)
    if slice_.provided.clashes:
        raise _clashing(slice_)
    if slice_.absent.missing:
        raise _missing(slice_)
    if slice_.values.refused:
        raise _refused(slice_)
    if slice_.values.too_big:
        raise _too_big(slice_.values, limit_bytes)


def _missing(slice_: Slice) -> CaptureError:
    known = sorted({*slice_.namespace, *dir(builtins), *slice_.provided.names, *slice_.options.parameters})
    lines = []
    for name, user in sorted(slice_.absent.missing.items()):
        near = closest_match(name, [k for k in known if not k.startswith("_")], cutoff=0.7)
        lines.append(f"  {name}" + (f", used by {user}" if user else "") + (f"; did you mean {near}?" if near else ""))
    return CaptureError(
        f"{count(len(lines), 'name')} that this cell uses {_verb(lines, 'does', 'do')} not exist:\n{_listed(lines)}",
        "Every name must be bound in the cell, in the notebook or by the search space.",
        "Run the cell that defines it, or correct the name.",
    )


def _two_meanings(conflict: NameConflict) -> CaptureError:
    return CaptureError(
        f"The cell reads `data`, which is {conflict.what}, and the header has a section `data:`.",
        "With that section `data` means its paths, as in data.NAME.",
        "Rename that variable, or write trial.data.NAME where the cell means the paths.",
    )


def _clashing(slice_: Slice) -> CaptureError:
    lines = [f"  {name}: {what}" for name, what in sorted(slice_.provided.clashes.items())]
    first = min(slice_.provided.clashes)
    return CaptureError(
        f"{count(len(lines), 'name')} of the search space {_verb(lines, 'is', 'are')} used for something else:\n"
        f"{_listed(lines)}",
        "A searched name is a plain variable of the trial; the notebook may bind it to a default, such as a number.",
        f"Rename it under `search:`, as in {first}_choice, or in the notebook.",
    )


def _refused(slice_: Slice) -> CaptureError:
    lines = []
    for path, why in sorted(slice_.values.refused.items()):
        lines.append(f"  {path}{_from(slice_, path)}: {_with_advice(why, path, slice_.history)}")
    return CaptureError(
        f"{count(len(lines), 'name')} that this cell uses cannot travel to a trial:\n{_listed(lines)}",
        "Functions, classes, modules and plain data can.",
        "Make it inside the cell, or in a function that the cell calls.",
    )


def _from(slice_: Slice, path: str) -> str:
    item = slice_.items.get(name_in(path))
    return f" ({item.origin})" if item and item.origin else ""


def _too_big(values: PickledValues, limit_bytes: int) -> CaptureError:
    entries = values.too_big
    heaviest = max(entries, key=lambda name: entries[name])
    over = "over " if values.uncounted else ""
    return CaptureError(
        f"The data this cell uses is {over}{format_bytes(sum(entries.values()))}:\n{tree(entries, rows=1)}",
        f"At most {format_bytes(limit_bytes)} of variables travel with an experiment.",
        f"Save {heaviest} to a file, name the file under `ship:` (or keep it where trials can read it), "
        "and load it in the cell.",
    )


def _listed(lines: Sequence[str]) -> str:
    if len(lines) <= _SHOWN:
        return "\n".join(lines)
    return "\n".join([*lines[: _SHOWN - 1], f"  and {len(lines) - _SHOWN + 1} more"])


def _verb(lines: Sequence[str], one: str, many: str) -> str:
    return one if len(lines) == 1 else many


# Tensors that autograd computed: their graph cannot travel, so what made them must be moved into the cell


def _with_advice(why: str, path: str, history: History) -> str:
    """Say what such a tensor was computed from and what to move into the cell; other reasons stay as they are.

    Args:
        why: The reason.
        path: How to reach the tensor, such as `losses[0]`.
        history: What the notebook's cells bound.
    """
    if COMPUTED not in why:
        return why
    name = name_in(path)
    value = history.values.get(name)
    leaves = ", ".join(_leaves(value, history.values)) if name == path else ""
    advice = _advice(history.last(name), whole=hasattr(value, "grad_fn"))
    return f"{why.replace(COMPUTED, f'{COMPUTED} from {leaves}' if leaves else COMPUTED)}: {advice}"


def _advice(binding: Binding | None, *, whole: bool) -> str:
    """Return the advice: move the statement, where it seems to have computed the tensor."""
    if binding is None or not (whole or _computes(binding.node)):
        return "compute it inside the cell, or keep its .detach()"
    return f"move `{cut(' '.join(binding.source.split()), _WIDTH)}` into the cell"


def _computes(node: ast.AST) -> bool:
    """Tell whether a statement calls something with arguments.

    `out = model(x)` does, and `losses = []` does not.
    """
    return any(isinstance(part, ast.Call) and part.args for part in ast.walk(node))


def _leaves(tensor: Any, namespace: Mapping[str, object]) -> list[str]:  # noqa: ANN401 - any value
    """Return the notebook's names of the values that a tensor was computed from.

    A module stands for its parameters.
    """
    names = dict(_named(namespace))
    todo = [getattr(tensor, "grad_fn", None)]
    seen = set[object]()
    found = dict[str, None]()
    while todo and len(seen) < _NODES_AT_MOST:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if id(leaf) in names:
            found[names[id(leaf)]] = None
        todo += [earlier for earlier, _ in node.next_functions]
    return sorted(found)[:_SHOWN]


def _named(namespace: Mapping[str, object]) -> Iterator[tuple[int, str]]:
    torch = sys.modules["torch"]
    for name, value in namespace.items():
        if isinstance(value, torch.nn.Module):
            for parameter in value.parameters():
                yield id(parameter), name
    for name, value in namespace.items():
        if isinstance(value, torch.Tensor) and not name.startswith("_"):
            yield id(value), name

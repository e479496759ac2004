"""What stops a capture, in words: names that do not exist, that mean two things, that cannot travel or are too big."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from jupyter_autotrain.capture.name_conflicts import NameConflict
from jupyter_autotrain.capture.sizes import tree
from jupyter_autotrain.capture.slice import Slice
from jupyter_autotrain.capture.values import autograd
from jupyter_autotrain.capture.values.pickles import PickledValues
from jupyter_autotrain.core.matching import closest_match
from jupyter_autotrain.core.sizes import format_bytes
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.core.trial_names import DATA
from jupyter_autotrain.errors import CaptureError

_SHOWN = 3


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
    known = sorted({*slice_.namespace, *dir(builtins), *slice_.provided.names, *slice_.parameters})
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
    known = slice_.namespace, slice_.history
    refused = {path: autograd.with_advice(why, path, *known) for path, why in sorted(slice_.values.refused.items())}
    lines = [f"  {path}{_from(slice_, path)}: {why}" for path, why in refused.items()]
    return CaptureError(
        f"{count(len(lines), 'name')} that this cell uses cannot travel to a trial:\n{_listed(lines)}",
        "Functions, classes, modules and plain data can.",
        "Make it inside the cell, or in a function that the cell calls.",
    )


def _from(slice_: Slice, path: str) -> str:
    item = slice_.items.get(path.partition("[")[0].partition(".")[0])
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

"""Functions of the notebook that handle signals: set again in a trial, or told."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.items import LATEST, Item
from jupyter_autotrain.capture.slice import Slice
from jupyter_autotrain.capture.state.paths import import_text


def restore_code(slice_: Slice) -> Iterator[tuple[Item | None, Difference]]:
    """Yield what sets each handler again, and the differences."""
    for number in sorted(signal.valid_signals()):
        handler = signal.getsignal(number)
        owner = looking.attribute(handler, "__self__", handler)
        if slice_.home not in {looking.attribute(handler, "__module__"), looking.module_of(type(owner))}:
            continue
        name = slice_.name_of(handler)
        what = f"signal.signal({signal.Signals(number).name}, {name or type(handler).__name__})"
        if not name:
            yield None, Difference(DifferenceKind.NOT_CARRIED, f"{what}: set it in the cell")
            continue
        text = f"{import_text('signal')}.signal({int(number)}, {name})"
        item = Item(f"signal {number}", "state", text, position=LATEST, eager=frozenset({name.partition(".")[0]}))
        yield item, Difference(DifferenceKind.REPLAYED, what)

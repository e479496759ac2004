"""Accelerators, and nodes, that are neighbours by their links: the sets that a trial with `adjacent:` may be given.

What is numbered one after the other is linked: on a ring 0-1-...-7-0, in a grid by rows. The grid is as square as its
count allows, so 8 devices are 2 x 4. Where every pair is linked, directly or by a switch, any set will do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from jupyter_autotrain.core.devices import LinkKind, presets
from jupyter_autotrain.core.inventory import Accelerator, Node
from jupyter_autotrain.core.spec import Resources

_ANY_PAIR = frozenset({LinkKind.SWITCH, LinkKind.FULL, LinkKind.SINGLE})


def device_sets(node: Node, usable: Sequence[Accelerator], asked: Resources) -> list[list[Accelerator]] | None:
    """Return the sets of usable devices of a node that are neighbours as a trial wants; None where any will do."""
    if asked.adjacent is None:
        return None
    devices = sorted(node.accelerators, key=lambda gpu: gpu.index)
    sets = adjacent_sets(len(devices), asked.gpus, _device_wiring(node, asked.adjacent), asked.adjacent)
    if sets is None:
        return None
    found = []
    for positions in sets:
        chosen = [devices[position] for position in sorted(positions)]
        if all(gpu in usable for gpu in chosen):
            found.append(chosen)
    return found


def node_sets(nodes: Sequence[Node], asked: Resources) -> list[list[str]] | None:
    """Return the names of nodes that are neighbours as a trial wants; None where any will do."""
    if asked.adjacent is None:
        return None
    sets = adjacent_sets(len(nodes), asked.nodes, _node_wiring(nodes), asked.adjacent)
    if sets is None:
        return None
    names = [node.name for node in nodes]
    return [list(map(names.__getitem__, sorted(positions))) for positions in sets]


def disjoint(sets: Sequence[Sequence[Accelerator]]) -> list[Sequence[Accelerator]]:
    """Return the first sets that have no device in common."""
    taken: set[str] = set()
    found = []
    for one in sets:
        ids = {gpu.id for gpu in one}
        if not ids & taken:
            taken |= ids
            found.append(one)
    return found


def free_neighbours(chosen: Sequence[Accelerator], free: Sequence[Accelerator], count: int) -> int:
    """Return how many free devices lie next to these by number: the fewer, the less a choice splits what is free."""
    own = {gpu.index for gpu in chosen}
    beside = {(index + 1) % count for index in own} | {(index - 1) % count for index in own}
    return len((beside - own) & {gpu.index for gpu in free})


def _device_wiring(node: Node, wanted: str) -> LinkKind:
    """Return the wiring of a node's devices: as found there, by the data sheet, else as a trial wants it."""
    if node.link is not None:
        return node.link.kind
    preset = presets().get(_kind(node))
    return LinkKind(wanted) if preset is None else preset.inside.kind


def _node_wiring(nodes: Sequence[Node]) -> LinkKind:
    """Return the wiring of the nodes: that of the chassis that the data sheet of their devices names, else a switch."""
    found = set(map(_kind, nodes))
    preset = presets().get(found.pop()) if len(found) == 1 else None
    return LinkKind.SWITCH if preset is None else preset.outside.kind


def adjacent_sets(count: int, asked: int, wiring: LinkKind, wanted: str) -> list[frozenset[int]] | None:
    """Return the sets of `asked` positions that are neighbours, among `count`; None where any set will do.

    Args:
        count: Devices of the node.
        asked: Devices of the trial.
        wiring: The links between the devices.
        wanted: `ring` or `mesh`: in a grid a ring needs a rectangle that a cycle runs through.
    """
    if wiring in _ANY_PAIR or asked <= 1:
        return None
    if wiring is LinkKind.RING:
        return _unique(_arc(start, asked, count) for start in range(count)) if asked <= count else []
    is_torus = wiring is LinkKind.TORUS
    return _unique(_rectangles(count, asked, is_torus=is_torus, is_cycle=wanted == LinkKind.RING))


def _kind(node: Node) -> str:
    return (node.accelerators[0].kind or "") if node.accelerators else ""


def _arc(start: int, length: int, count: int) -> frozenset[int]:
    return frozenset((start + step) % count for step in range(length))


def _rectangles(count: int, asked: int, *, is_torus: bool, is_cycle: bool) -> Iterator[frozenset[int]]:
    rows = _greatest_divisor(count)
    columns = count // rows
    for height in range(1, rows + 1):
        width = asked // height
        if height * width != asked or width > columns:
            continue
        if is_cycle and not _has_cycle(height, width, rows, columns, is_torus=is_torus):
            continue
        tops = rows if is_torus else rows - height + 1
        lefts = columns if is_torus else columns - width + 1
        for corner in range(tops * lefts):
            top, left = divmod(corner, lefts)
            rows_of = [(top + down) % rows * columns for down in range(height)]
            columns_of = [(left + across) % columns for across in range(width)]
            yield frozenset(map(sum, product(rows_of, columns_of)))


def _has_cycle(height: int, width: int, rows: int, columns: int, *, is_torus: bool) -> bool:
    """Tell whether one closed way of links visits each device of a rectangle once; a pair counts as one."""
    if height * width == 2:
        return True
    if height > 1 and width > 1:
        return height * width % 2 == 0
    return is_torus and (width == columns if height == 1 else height == rows)


def _greatest_divisor(count: int) -> int:
    """Return the greatest divisor that is at most the square root."""
    return next(rows for rows in range(math.isqrt(count), 0, -1) if count % rows == 0) if count else 1


def _unique(sets: Iterator[frozenset[int]]) -> list[frozenset[int]]:
    return list(dict.fromkeys(sets))

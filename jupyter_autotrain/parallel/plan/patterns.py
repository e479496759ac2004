"""Modules by name in a plan's code: paths and patterns, layers and their numbers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain

from jupyter_autotrain.parallel.plan.modules import ModuleSharding, ranges


def patterns(
    styled: Sequence[tuple[ModuleSharding, str]], among: Sequence[ModuleSharding]
) -> Iterator[tuple[str, str]]:
    """(quoted path or pattern, style): one entry per path inside a layer when all layers agree, else one per layer.

    A pattern names no other module of those `among` which it is read.
    """
    layers = Counter((module.layer[0], module.layer[2]) for module in among if module.layer)
    lists: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    order: dict[tuple[str, str], None] = {}
    for module, style in styled:
        layer = module.layer
        key = (layer[0], layer[2]) if layer else ("", module.path)
        lists[key].append((layer[1] if layer else -1, style))
        order[key] = None
    for container, inner in order:
        entries = lists[container, inner]
        if not container:
            yield f'"{inner}"', entries[0][1]
        elif len({style for _, style in entries}) == 1 and 1 < len(entries) == layers[container, inner]:
            yield f'"{container}.*.{inner}"', entries[0][1]
        else:
            yield from ((f'"{container}.{index}.{inner}"', style) for index, style in entries)


def matches(modules: Sequence[ModuleSharding], among: Sequence[ModuleSharding]) -> str:
    """The test whether a parameter's `name` is of one of some modules, and of none else."""
    unstyled = [(module, "") for module in modules]
    paths = (path.removesuffix('"') + '.*"' for path, _ in patterns(unstyled, among))
    return f"any(fnmatch.fnmatch(name, p) for p in ({', '.join(paths)},))"


def layers_of(modules: Sequence[ModuleSharding]) -> dict[tuple[str, int], list[ModuleSharding]]:
    """(container, index) → its modules; only containers with several numbered parts."""
    found: dict[tuple[str, int], list[ModuleSharding]] = defaultdict(list)
    for module in modules:
        layer = module.layer
        if layer:
            found[layer[0], layer[1]].append(module)
    counts = Counter(container for container, _ in found)
    return {key: inside for key, inside in found.items() if counts[key[0]] > 1}


def indices_of(numbers: Sequence[int]) -> str:
    """Numbers as one range, or several in a list."""
    if not numbers:
        return "range(0)"
    stretches = list(ranges(sorted(numbers)))
    if len(stretches) == 1:
        return f"range({stretches[0][0]}, {stretches[0][1]})"
    return str(list(chain.from_iterable(range(a, b) for a, b in stretches)))

"""The levels of a cluster, from the cards of a chassis outwards, and how its string form names them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from jupyter_autotrain.core.cluster_figures import FORMS
from jupyter_autotrain.core.devices import Device, Link, LinkKind, Preset, presets
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.errors import PlanError

_LEVEL_NAMES = ("chassis", "pod", "cluster")
_WRAPPED = re.compile(r"^\s*[a-zA-Z_]+\((?P<body>[^(),]+)(?:,\s*(?P<kind>[a-z]+)\s*)?\)\s*$")
_COUNTED = re.compile(r"^\s*(?P<sizes>(?:\d+\s*[x*]\s*)*)(?P<device>[A-Za-z][\w.-]*)\s*$")


@dataclass(frozen=True, slots=True)
class Level:
    """`size` equal parts joined by `link`; a part is a device (innermost level) or the whole level below."""

    name: str
    size: int
    link: Link


def preset_of(name: str) -> Preset:
    """Return the preset of a device's name, in any case.

    Raises:
        PlanError: For an unknown name, with the nearest.
    """
    known = presets()
    by_lower = {key.lower(): preset for key, preset in known.items()}
    if name.lower() in by_lower:
        return by_lower[name.lower()]
    near = closest_match(name, known, cutoff=0.0)
    raise PlanError(
        f"Unknown device {name!r}.",
        f"The nearest known name is {near!r}; known: {', '.join(sorted(known))}.",
        "Use a known name, or give the cluster as a mapping with the device's figures.",
    )


def parse_part(text: str) -> tuple[Device, tuple[Level, ...]]:
    """Return the device and the levels of one part of a cluster's text form, such as `2x8xH100`.

    Raises:
        PlanError: For an unknown device (with the nearest name), a wrong form.
    """
    wrapped = _WRAPPED.match(text)
    body, kind = (wrapped["body"], wrapped["kind"]) if wrapped else (text, None)
    counted = _COUNTED.match(body)
    if counted is None or (kind and kind not in set(LinkKind)):
        raise PlanError(f"Cannot read the cluster {text!r}.", f"Forms: {FORMS}.", "Write it in one of these forms.")
    preset = preset_of(counted["device"])
    sizes = [int(size) for size in re.findall(r"\d+", counted["sizes"])] or [1]
    levels = _levels(_split_chassis(sizes, preset.chassis), preset)
    if kind:
        levels = (*levels[:-1], replace(levels[-1], link=replace(levels[-1].link, kind=LinkKind(kind))))
    return preset.device, levels


def _split_chassis(sizes: list[int], chassis: int) -> list[int]:
    """Split a bare count larger than a chassis into several equal chassis: 64xH100 is 8x8xH100."""
    if len(sizes) > 1 or sizes[0] <= chassis:
        return sizes
    inner = next(k for k in range(chassis, 0, -1) if sizes[0] % k == 0)
    return [sizes[0] // inner, inner]


def _levels(sizes: list[int], preset: Preset) -> tuple[Level, ...]:
    """Return the levels, innermost first.

    The chassis is joined by its own links, everything above by the outside links.
    """
    levels = []
    for index, size in enumerate(reversed(sizes)):
        link = preset.inside if index == 0 else preset.outside
        name = _LEVEL_NAMES[min(index, len(_LEVEL_NAMES) - 1)] if math.prod(sizes) > 1 else "card"
        levels.append(Level(name, size, link if size > 1 else replace(link, kind=LinkKind.SINGLE)))
    return tuple(levels)

"""Checks of the things that a cluster is made from: the figures of devices and links, and a mapping of them.

Also the levels of a cluster, from the cards of a chassis outwards, and how its string form names them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import TypeAlias

from jupyter_autotrain.agent.json import JsonValue, from_json
from jupyter_autotrain.agent.sizes import format_memory, parse_bytes
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
    sizes = list(map(int, re.findall(r"\d+", counted["sizes"]))) or [1]
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


Figures: TypeAlias = Mapping[str, JsonValue]
FORMS = "8xH100, 2x8xA100-80GB, pod(32x8xNNP-T1000, ring), 8xH100+8xA100, or a mapping"
_RATES = ("matrix_flops_per_s", "matrix32_flops_per_s", "memory_bytes", "memory_bytes_per_s", "host_bytes_per_s")


def check_text(value: object) -> None:
    """Refuse a text that cannot name a device: an empty one, or a number alone.

    Raises:
        PlanError: With the line to write.
    """
    if isinstance(value, str) and not value.strip().isdecimal():
        return
    number = int(value) if isinstance(value, str) else value
    counted = isinstance(number, int) and not isinstance(number, bool) and number > 0
    raise PlanError(
        f"The cluster is {value!r}, which names no device.",
        f"Forms: {FORMS}.",
        f'Write how many of which device: cluster="{number if counted else 8}xH100".',
    )


def check_count(where: str, name: str, value: object) -> None:
    """Refuse a value that is no whole number above zero.

    Raises:
        PlanError: Naming `where` and the figure's name.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise PlanError(f"{where} has {name} = {value!r}.", "A whole number above zero.", "Correct it.")


def check_device(device: Device) -> None:
    """Refuse a device whose figures no machine can have.

    Raises:
        PlanError: A rate or a size that is no finite number above zero.
    """
    for name in _RATES:
        value = getattr(device, name)
        if not _is_above_zero(value):
            raise PlanError(
                f"Device {device.name!r} has {name} = {value!r}.",
                "A finite number above zero: compute rate, memory and bandwidths of one device.",
                "Complete the device's figures.",
            )
    check_count(f"Device {device.name!r}", "multiprocessors", device.multiprocessors)


def check_reserved(device: Device, reserved_bytes: int | None = None) -> None:
    """Refuse a device that would have no memory left; `reserved_bytes` is the cluster's, None where it has none.

    Raises:
        PlanError: Naming the device.
    """
    kept = device.reserved_bytes if reserved_bytes is None else reserved_bytes
    if not _is_number(kept) or not 0 <= kept < device.memory_bytes:
        raise PlanError(
            f"Of {format_memory(device.memory_bytes)} of device {device.name!r}, {kept!r} bytes are reserved.",
            "Zero or more, and less than the device's memory.",
            "Give what the runtime, communication and the allocator take, such as 6GB.",
        )


def reserved_of(value: JsonValue) -> int:
    """Return the bytes that a mapping reserves: a number, 0 as well, or a size such as `6GB`.

    Raises:
        PlanError: When it is neither.
    """
    if isinstance(value, int | float) and value == 0 and not isinstance(value, bool):
        return 0
    return memory_of(value)


def memory_of(value: object) -> int:
    """Return the bytes of a device's memory, given as a size or as a number.

    Raises:
        PlanError: When it is no size above zero.
    """
    try:
        return parse_bytes(value)
    except ValueError:
        raise PlanError(
            f"Cannot read the size {value!r}.", "A size above zero, such as 80GB or 16GiB.", "Write it so."
        ) from None


def check_link(level: str, size: object, link: Link) -> None:
    """Refuse a level whose size or link no machine can have.

    Raises:
        PlanError: A size that is no whole number above zero; a bandwidth, latency or efficiency out of its range.
    """
    where = f"Level {level!r}"
    check_count(where, "size", size)
    check_count(where, "shared_by", link.shared_by)
    check_count(where, "dims", link.dims)
    if size != 1 and not _is_above_zero(link.bytes_per_s):
        raise PlanError(
            f"{where} has a bandwidth of bytes_per_s = {link.bytes_per_s!r}.",
            "A level that joins devices needs a finite bandwidth above zero.",
            "Give its bandwidth per device and direction, or leave the level out.",
        )
    if not (_is_number(link.latency_s) and link.latency_s >= 0):
        raise PlanError(
            f"{where} has latency_s = {link.latency_s!r}.",
            "Seconds of an empty message: a finite number, zero or more.",
            "Give seconds, 5e-6 for five microseconds.",
        )
    if not (_is_above_zero(link.efficiency) and link.efficiency <= 1):
        raise PlanError(
            f"{where} has efficiency = {link.efficiency!r}.",
            "The share of the bandwidth that large collectives reach: above 0, at most 1.",
            "Give a share such as 0.7, or leave it out for 1.",
        )


def device_of(value: JsonValue) -> Device:
    """Return a device made from its figures by name.

    Raises:
        PlanError: Not a mapping, figures that are missing or that no device has.
    """
    return from_json(Device, _checked(value, Device, "device", ()))


def link_of(level: Figures) -> Link:
    """Return the link of a level's figures by name; `name` and `size` are the level's own.

    Raises:
        PlanError: Figures that are missing or that no link has, an unknown kind.
    """
    kind = level.get("kind", str(LinkKind.SWITCH))
    if kind not in list(LinkKind):  # a list: what is given may have no hash
        raise PlanError(
            f"A level has the kind {kind!r}.", f"One of {', '.join(LinkKind)}.", "Name how its parts are wired."
        )
    figures = _checked({**level, "kind": kind}, Link, "level", ("name", "size"))
    return from_json(Link, figures)


def levels_of(value: JsonValue) -> Sequence[Figures]:
    """Return the levels of a mapping, each with its name and size.

    Raises:
        PlanError: Not a list of mappings, or one without `name` or `size`.
    """
    there = value if isinstance(value, list | tuple) else []
    mappings = [level for level in there if isinstance(level, Mapping)]
    if not mappings or len(mappings) != len(there):
        raise _unreadable(f"its `levels` are {value!r}")
    for level in mappings:
        missing = [key for key in ("name", "size") if key not in level]
        if missing:
            raise _unreadable(f"a level lacks {' and '.join(missing)}")
    return mappings


def _checked(value: JsonValue, cls: type[Device] | type[Link], what: str, more: tuple[str, ...]) -> Figures:
    """Return figures, once they are all known and complete."""
    if not isinstance(value, Mapping):
        raise _unreadable(f"its {what} is {value!r}")
    known = [field.name for field in fields(cls)]
    odd = [key for key in value if key not in (*known, *more)]
    if odd:
        near = closest_match(str(odd[0]), known, cutoff=0.0)
        raise PlanError(
            f"The cluster's {what} has an unknown figure {odd[0]!r}.",
            f"Known: {', '.join((*more, *known))}; the nearest is {near!r}.",
            "Correct or drop it.",
        )
    _check_complete(value, cls, what)
    return value


def _check_complete(figures: Figures, cls: type[Device] | type[Link], what: str) -> None:
    missing = [field.name for field in fields(cls) if field.default is MISSING and field.name not in figures]
    if missing:
        raise _unreadable(f"its {what} lacks {' and '.join(missing)}")
    for field in fields(cls):
        if isinstance(figures.get(field.name), bool) and field.type != "bool":
            raise _unreadable(f"its {what} has {field.name} = {figures[field.name]}, which is not a number")


def _unreadable(why: str) -> PlanError:
    return PlanError(
        f"The cluster mapping cannot be read: {why}.",
        "It needs `device` and `levels`, each level with name, size, kind, bytes_per_s and latency_s.",
        "Complete the mapping, innermost level first.",
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_above_zero(value: float) -> bool:
    return _is_number(value) and value > 0

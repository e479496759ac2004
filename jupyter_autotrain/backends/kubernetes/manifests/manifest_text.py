"""Manifests as YAML that `kubectl apply -f` reads as it was meant: it reads YAML 1.1, where `on` is true."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from typing import cast

from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import SafeRepresenter

from jupyter_autotrain.core.json import JsonObject, JsonValue
from jupyter_autotrain.core.sizes import format_bytes

_FIRST = ("apiVersion", "kind", "metadata", "name", "namespace")
_PLAIN = re.compile(r"[A-Za-z/][\w./-]*(?::[\w./-]+)?", re.ASCII)
_NO_TEXT = re.compile(r"(?:y|n|yes|no|on|off|true|false|null)", re.IGNORECASE)  # in YAML 1.1 these are no texts
_WIDTH = 4096  # a text on one line stays on one line
_BASE64_BYTES = 0.75  # per character


class _Representer(SafeRepresenter):
    """Quotes every text that some reader of YAML takes for something else."""


def _text(representer: SafeRepresenter, value: str) -> ScalarNode:
    style = None if _PLAIN.fullmatch(value) and not _NO_TEXT.fullmatch(value) else '"'
    if "\n" in value and value.isprintable() is False and all(c.isprintable() or c == "\n" for c in value):
        style = "|"
    node: ScalarNode = representer.represent_scalar("tag:yaml.org,2002:str", value, style=style)
    return node


_Representer.add_representer(str, _text)


def to_yaml(objects: Iterable[JsonObject], *, is_whole: bool = True) -> str:
    """The documents of some objects, each after a line `---`.

    Args:
        objects: The manifests.
        is_whole: False to give the size of binary data in its place, for people who read it.
    """
    writer = YAML(typ="safe", pure=True)
    writer.Representer = _Representer
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # its own annotation is None
    writer.width = _WIDTH
    text = io.StringIO()
    for found in objects:
        text.write("---\n")
        writer.dump(_ordered(found if is_whole else _shortened(found)), text)
    return text.getvalue()


def _ordered(value: JsonValue) -> JsonValue:
    """With the keys that say what it is before the others."""
    if isinstance(value, Mapping):
        keys = [key for key in _FIRST if key in value] + [key for key in value if key not in _FIRST]
        return {key: _ordered(value[key]) for key in keys}
    if isinstance(value, list | tuple):
        return [_ordered(item) for item in value]
    return value


def _shortened(found: JsonObject) -> JsonObject:
    data = found.get("binaryData")
    if not isinstance(data, Mapping):
        return found
    sizes = {name: _size(cast("str", content)) for name, content in data.items()}
    return {**found, "binaryData": cast("JsonObject", sizes)}


def _size(content: str) -> str:
    return f"({format_bytes(len(content) * _BASE64_BYTES)}, not shown here)"

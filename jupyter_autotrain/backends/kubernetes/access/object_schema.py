"""A manifest against the schema of its kind: every unknown or ill-typed field, with its path and the nearest match.

The schema is that of the API server's OpenAPI, of version 3 or 2, in the dialect that it uses: `x-kubernetes-...`, one
reference in `allOf`, and `oneOf` for what is an integer or a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from jupyter_autotrain.core.json import JsonObject, JsonValue
from jupyter_autotrain.core.matching import closest_match

_MOST_KNOWN = 8  # names that are listed where none is near
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_QUANTITY = ".resource.Quantity"
_QUANTITY_SCHEMA: JsonObject = {"oneOf": [{"type": "string"}, {"type": "number"}]}  # version 2 says text only
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (Mapping,), "array": (list, tuple), "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,),
}  # fmt: skip
_ARTICLES = {"object": "a mapping", "array": "a list", "string": "text", "integer": "an integer",
             "number": "a number", "boolean": "true or false"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ObjectSchema:
    """The schema of one kind of object.

    Attributes:
        root: Of the whole object.
        definitions: What its references name, by the last part of their paths.
    """

    root: JsonObject
    definitions: Mapping[str, JsonObject]

    def faults(self, manifest: JsonObject) -> list[str]:
        """All that is wrong with a manifest of this kind, a line each."""
        return list(self._faults(manifest, self.root, ""))

    def resolved(self, schema: JsonObject) -> JsonObject:
        """A schema with what it refers to."""
        merged = schema
        for _ in range(8):  # a reference to a reference
            reference = merged.get("$ref")
            parts = merged.get("allOf")
            if isinstance(reference, str):
                name = reference.rpartition("/")[2]
                others = {key: value for key, value in merged.items() if key != "$ref"}
                merged = {**self.definitions.get(name, {_PRESERVE: True}), **others}
                if name.endswith(_QUANTITY):
                    return _QUANTITY_SCHEMA
            elif isinstance(parts, Sequence) and len(parts) == 1 and not isinstance(parts, str):
                others = {key: value for key, value in merged.items() if key != "allOf"}
                merged = {**cast("JsonObject", parts[0]), **others}
            else:
                break
        return merged

    def _faults(self, value: JsonValue, schema: JsonObject, path: str) -> Iterator[str]:
        found = self.resolved(schema)
        if value is None:
            return  # as if it were not there
        if wrong := _type_fault(value, found):
            yield f"{path}: {_shown(value)}; {wrong}"
        elif isinstance(value, Mapping):
            yield from self._mapping_faults(value, found, path)
        elif isinstance(value, list | tuple):
            items = cast("JsonObject", found.get("items") or {_PRESERVE: True})
            for number, item in enumerate(value):
                yield from self._faults(item, items, f"{path}[{_label(item, number)}]")
        else:
            yield from _value_faults(value, found, path)

    def _mapping_faults(self, value: JsonObject, schema: JsonObject, path: str) -> Iterator[str]:
        properties = cast("Mapping[str, JsonObject]", schema.get("properties") or {})
        more = schema.get("additionalProperties")
        is_open = bool(schema.get(_PRESERVE)) or not properties
        for name in cast("Sequence[str]", schema.get("required") or ()):
            if value.get(name) is None:
                yield f"{_joined(path, name)}: is missing; expected a value"
        for name, content in value.items():
            inner = _joined(path, name)
            if name in properties:
                yield from self._faults(content, properties[name], inner)
            elif isinstance(more, Mapping):
                yield from self._faults(content, more, inner)
            elif not is_open:
                yield f"{inner}: unknown field; {_instead(name, list(properties))}"


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _label(item: JsonValue, number: int) -> str:
    """An item of a list by its name, where it has one."""
    name = item.get("name") if isinstance(item, Mapping) else None
    return str(name) if isinstance(name, str) else str(number)


def _instead(name: str, known: Sequence[str]) -> str:
    if near := closest_match(name, known):
        return f"did you mean {near!r}?"
    names = ", ".join(sorted(known)[:_MOST_KNOWN])
    return f"expected one of {names}{', ...' if len(known) > _MOST_KNOWN else ''}"


def _type_fault(value: JsonValue, schema: JsonObject) -> str:
    """What is expected in the place of a value of another type; "" where it fits."""
    names = _type_names(schema)
    if not names or any(_is_of(value, name) for name in names):
        return ""
    return f"expected {' or '.join(_ARTICLES.get(name, name) for name in names)}"


def _type_names(schema: JsonObject) -> list[str]:
    if schema.get(_INT_OR_STRING) or schema.get("format") == "int-or-string":
        return ["integer", "string"]
    name = schema.get("type")
    if isinstance(name, str):
        return [name]
    choices = schema.get("oneOf") or schema.get("anyOf")
    found: list[str] = []
    for choice in cast("Sequence[JsonObject]", choices or ()):
        if not isinstance(choice.get("type"), str):
            return []
        found.append(str(choice["type"]))
    return found


def _shown(value: JsonValue) -> str:
    from jupyter_autotrain.header.faults import shown  # noqa: PLC0415 - pydantic is slow and large; few have faults

    return shown(value)


def _is_of(value: JsonValue, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES.get(name, (object,)))


def _value_faults(value: JsonValue, schema: JsonObject, path: str) -> Iterator[str]:
    known = schema.get("enum")
    if isinstance(known, Sequence) and value not in known:
        yield f"{path}: {_shown(value)}; {_instead(str(value), [str(one) for one in known])}"
    for limit, word in (("minimum", "at least"), ("maximum", "at most")):
        bound = schema.get(limit)
        if isinstance(bound, int | float) and isinstance(value, int | float):
            is_beyond = value < bound if limit == "minimum" else value > bound
            if is_beyond:
                yield f"{path}: {_shown(value)}; expected {word} {bound}"
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and isinstance(value, str) and not _matches(pattern, value):
        yield f"{path}: {_shown(value)}; expected what {pattern} matches"


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:  # the server's dialect of expressions is another one
        return True

"""Parts of schemas of custom kinds."""

from __future__ import annotations

from tests.labs.kubernetes.objects.values import Json

INTEGER: Json = {"type": "integer"}
TEXT: Json = {"type": "string"}
TRUTH: Json = {"type": "boolean"}
QUANTITY: Json = {"x-kubernetes-int-or-string": True}
ANYTHING: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def built_in(name: str) -> Json:
    """Return the schema of a built-in kind."""
    return {"$ref": f"#/components/schemas/{name}"}


def fields(required: tuple[str, ...] = (), **properties: Json) -> Json:
    """Return an object with these fields and no others."""
    found: Json = {"type": "object", "properties": properties}
    if required:
        found["required"] = list(required)
    return found


def array(items: Json) -> Json:
    """Return a list."""
    return {"type": "array", "items": items}


def mapping(values: Json) -> Json:
    """Return an object with any keys."""
    return {"type": "object", "additionalProperties": values}


def enum(*values: str) -> Json:
    """One of some texts."""
    return {"type": "string", "enum": list(values)}


def condition() -> Json:
    """Return a condition of a status."""
    return fields(
        ("type", "status"),
        type=TEXT, status=enum("True", "False", "Unknown"), reason=TEXT, message=TEXT,
        lastUpdateTime=TEXT, lastTransitionTime=TEXT, observedGeneration=INTEGER,
    )  # fmt: skip


def whole(spec: Json, status: Json | None = None, required: tuple[str, ...] = ("spec",)) -> Json:
    """Return the schema of an object."""
    properties = {"spec": spec} | ({"status": status} if status else {})
    return fields(required, apiVersion=TEXT, kind=TEXT, metadata={"type": "object"}, **properties)


def metadata() -> Json:
    """Return the metadata of a template."""
    return fields(annotations=mapping(TEXT), finalizers=array(TEXT), labels=mapping(TEXT), name=TEXT, namespace=TEXT)

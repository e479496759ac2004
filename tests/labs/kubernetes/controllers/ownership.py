"""Who made an object: its owner references."""

from __future__ import annotations

from collections.abc import Iterable

from tests.labs.kubernetes.controllers.loop import Key
from tests.labs.kubernetes.objects.values import Json


def owner_reference(owner: Json) -> Json:
    """Return what the metadata of an object says that a controller makes for its own object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_of(found: Json) -> Json | None:
    """Return the reference to the owner that controls an object."""
    for reference in found["metadata"].get("ownerReferences", ()):
        if reference.get("controller"):
            return dict(reference)
    return None


def owned_key(found: Json, kind: str) -> Iterable[Key]:
    """Yield the key of the owner that controls an object, if it is of a kind; for `Controller.keys`."""
    reference = controller_of(found)
    if reference is not None and reference["kind"] == kind:
        yield found["metadata"].get("namespace", ""), reference["name"]


def owned(objects: Iterable[Json], owner: Json) -> list[Json]:
    """Return those of some objects that an owner controls."""
    references = [(found, controller_of(found)) for found in objects]
    uid = owner["metadata"]["uid"]
    return [found for found, reference in references if reference is not None and reference["uid"] == uid]

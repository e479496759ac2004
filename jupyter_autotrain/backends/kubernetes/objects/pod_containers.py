"""The main container of a pod template, and templates that differ in it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from jupyter_autotrain.backends.kubernetes.objects.fields import items, part
from jupyter_autotrain.core.json import JsonObject, JsonValue

Objects = Sequence[JsonObject]


def main_container(template: JsonObject) -> JsonObject:
    """The first container of a pod template, which runs the trial."""
    return items(template, "spec", "containers")[0]


def with_main_container(template: JsonObject, changes: JsonObject, env: Objects = ()) -> JsonObject:
    """A pod template whose first container is changed.

    Args:
        template: The pod template; it stays as it is.
        changes: Keys of the container that are replaced.
        env: Variables that are added in front of its own, so that its own may refer to them.
    """
    spec = part(template, "spec")
    first, *others = items(spec, "containers")
    own = [*env, *items(first, "env")]
    changed: dict[str, JsonValue] = {**first, **changes}
    if own:
        changed["env"] = own
    return {**template, "spec": {**spec, "containers": [changed, *others]}}


def without(owner: JsonObject, *names: str) -> JsonObject:
    """An object without some of its keys."""
    return {name: value for name, value in owner.items() if name not in names}


def json_variable(content: JsonObject) -> str:
    """Return the value of a variable that holds JSON, in which a kubelet finds nothing to expand.

    A kubelet replaces `$(NAME)` and `$$` in each value of a container's variables; JSON can write a dollar without one.
    """
    return json.dumps(content, sort_keys=True).replace("$", "\\u0024")


def unexpanded(text: str) -> str:
    """Return what a kubelet makes into a text where it expands `$(NAME)`: in commands, arguments and `subPathExpr`."""
    return text.replace("$", "$$")


def value_variable(name: str, value: str) -> JsonObject:
    """A variable of a container."""
    return {"name": name, "value": value}


def label_variable(name: str, label: str) -> JsonObject:
    """A variable of a container that holds a label of its pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{label}']"}}}


def annotation_variable(name: str, annotation: str) -> JsonObject:
    """A variable of a container that holds an annotation of its pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{annotation}']"}}}

"""Folders on a volume of which a container mounts only a part.

A node makes those that are not there as root, and without write permission where the volume's own folder gives none to
others: a container with a user of its own could not write into them. So they are made by that user before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jupyter_autotrain.backends.kubernetes.objects.fields import items, part, text
from jupyter_autotrain.backends.kubernetes.objects.pod_containers import main_container, unexpanded
from jupyter_autotrain.backends.kubernetes_pod import layout
from jupyter_autotrain.core.json import JsonObject, JsonValue

_NAME = "autotrain-folders"
_RESOURCES: Final = {"cpu": "100m", "memory": "64Mi"}
_MAKE = f"""
import os, sys
for path in sys.argv[1:]:
    here = {layout.STORAGE!r}
    for name in path.split("/"):
        mode = os.stat(here).st_mode & 0o7777
        here += "/" + name
        try:
            os.mkdir(here)
            os.chmod(here, mode)
        except FileExistsError:
            pass
        except OSError as error:
            sys.exit("The volume of `storage:` has no " + here[len({layout.STORAGE!r}):] + ", and user "
                     + str(os.getuid()) + " of the container cannot make it: " + str(error.strerror))
"""


def with_volume_folders(template: JsonObject, volume: str, env: Sequence[JsonObject] = ()) -> JsonObject:
    """The template with an init container that makes the parts of a volume which its main container mounts.

    Args:
        template: The pod template; one that has such a container already gets another.
        volume: The name of the volume.
        env: The variables that are named in `subPathExpr`, where its controller sets them in main containers alone.
    """
    plain = without_volume_folders(template)
    first = main_container(plain)
    mounts = [mount for mount in items(first, "volumeMounts") if mount.get("name") == volume]
    folders = [unexpanded(text(mount, "subPath")) or text(mount, "subPathExpr") for mount in mounts]
    named = list(dict.fromkeys(filter(None, folders)))
    return _with_init(plain, [*_init_containers(plain), _maker(first, volume, named, env)]) if named else plain


def without_volume_folders(template: JsonObject) -> JsonObject:
    """The template without that init container."""
    others = [one for one in _init_containers(template) if one.get("name") != _NAME]
    return _with_init(template, others) if len(others) < len(_init_containers(template)) else template


def _maker(first: JsonObject, volume: str, folders: Sequence[str], env: Sequence[JsonObject]) -> JsonObject:
    python = str(_texts(first, "command")[0])
    found: dict[str, JsonValue] = {
        "name": _NAME, "image": first["image"], "command": [python, "-I", "-S", "-c", _MAKE], "args": list(folders),
        "volumeMounts": [{"name": volume, "mountPath": layout.STORAGE}], "env": list(env),
        "resources": {"requests": _RESOURCES, "limits": _RESOURCES}, "imagePullPolicy": first.get("imagePullPolicy"),
        "securityContext": part(first, "securityContext"), "terminationMessagePolicy": "FallbackToLogsOnError",
    }  # fmt: skip
    return {name: value for name, value in found.items() if value}


def _texts(found: JsonObject, name: str) -> Sequence[JsonValue]:
    value = found.get(name)
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ["python3"]


def _init_containers(template: JsonObject) -> list[JsonObject]:
    return items(template, "spec", "initContainers")


def _with_init(template: JsonObject, containers: Sequence[JsonObject]) -> JsonObject:
    spec: dict[str, JsonValue] = {**part(template, "spec"), "initContainers": list(containers)}
    if not containers:
        del spec["initContainers"]
    return {**template, "spec": spec}

"""One security context as options have it, and the two of a pod: of the pod itself and of its container."""

from __future__ import annotations

from typing import cast

from jupyter_autotrain.core.json import JsonObject

OF_PODS = (
    "fsGroup", "fsGroupChangePolicy", "supplementalGroups", "supplementalGroupsPolicy", "sysctls", "runAsUser",
    "runAsGroup", "runAsNonRoot", "seccompProfile", "seLinuxOptions", "appArmorProfile",
)  # fmt: skip
OF_CONTAINERS = ("capabilities", "privileged", "allowPrivilegeEscalation", "readOnlyRootFilesystem", "procMount")


def security_contexts(options: JsonObject) -> tuple[JsonObject, JsonObject]:
    """The security context of the pod, and that of its container; what both can have is the pod's."""
    given = cast("JsonObject", options.get("security_context") or {})
    of_pod = {name: value for name, value in given.items() if name in OF_PODS}
    of_container = {name: value for name, value in given.items() if name in OF_CONTAINERS}
    return of_pod, of_container

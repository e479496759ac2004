"""The permissions of a user in a namespace: asked before anything is sent; missing ones are told with a ready Role."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.backends.kubernetes.workloads.volumes import storage_volume
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

Post = Callable[[str, JsonObject], JsonObject]  # path and body to the answer; BackendError where refused
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"  # from Kubernetes 1.28 on
ROLE = "jupyter-autotrain"
_AT_ONCE = 8
_MOST_SHOWN = 4
_OF_OWN = ("create", "get", "list", "watch", "deletecollection")
_ALWAYS = (
    ("", "pods", ("list", "watch")),
    ("", "pods/log", ("get",)),
    ("", "pods/exec", ("create", "get")),
    ("", "configmaps", ("create", "patch")),
)
_OF_VOLUME = ("", "pods", ("create", "get", "delete"))  # a pod carries code to it
_OF_REUSE = (("", "pods", ("patch",)), ("", "configmaps", ("get",)))  # pods are given one trial after another
_OF_CLEAN = ("configmaps", "secrets", "services", "persistentvolumeclaims")
_OF_SERVER = ("", "secrets", ("get",))  # with what files are sent to it


@dataclass(frozen=True, slots=True)
class Permission:
    """One verb on one resource, such as get on pods/log; `group` is "" for the core group."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"


def needed(
    own: ObjectType, others: Iterable[ObjectType] = (), options: JsonObject | None = None, *, is_gang: bool = False
) -> tuple[Permission, ...]:
    """Return what a backend does in its namespace.

    Args:
        own: What a trial is: a Job, or another kind of object.
        others: What is made besides, and deleted with it: Services, Secrets, ...
        options: Of the profile, whose storage and long-running pods need more.
        is_gang: Whether it is made suspended, and resumed when all its pods can begin.
    """
    given = options or {}
    found = [(own.group, own.plural, _OF_OWN), *_ALWAYS]
    if storage_volume(given) is not None:
        found.append(_OF_VOLUME)
    elif given.get("storage"):
        found.append(_OF_SERVER)
    if given.get("reuse"):
        found += _OF_REUSE
    if is_gang:
        found.append((own.group, own.plural, ("patch",)))
    found += [(one.group, one.plural, ("create",)) for one in others]
    wanted = [Permission(group, resource, verb) for group, resource, verbs in found for verb in verbs]
    return tuple(dict.fromkeys(wanted))


def useful(own: ObjectType) -> tuple[Permission, ...]:
    """Return what is done besides where it may be: reasons of waits are read, and `clean` removes what is left.

    Some clusters ask for `delete` where an object gets another owner, as code does with each trial that uses it.

    Args:
        own: What a trial is.
    """
    removed = [Permission("", plural, verb) for plural in _OF_CLEAN for verb in ("list", "delete")]
    deleted = Permission("", "pods", "delete"), Permission(own.group, own.plural, "delete")
    return (Permission("", "events", "list"), *deleted, *removed)


def missing(post: Post, namespace: str, wanted: Sequence[Permission]) -> tuple[Permission, ...]:
    """Return those that the user has not; a cluster that does not say has refused none.

    Args:
        post: Asks the API server; may be called in several threads.
        namespace: Where.
        wanted: What is asked for.

    Raises:
        BackendUnavailableError: The cluster does not answer.
    """

    def is_allowed(permission: Permission) -> bool:
        return _allowed(post, namespace, permission)

    with ThreadPoolExecutor(_AT_ONCE) as executor:
        answers = list(executor.map(is_allowed, wanted))
    return tuple(permission for permission, allowed in zip(wanted, answers, strict=True) if not allowed)


def _allowed(post: Post, namespace: str, permission: Permission) -> bool:
    resource, _, subresource = permission.resource.partition("/")
    asked = {"namespace": namespace, "verb": permission.verb, "group": permission.group, "resource": resource}
    if subresource:
        asked["subresource"] = subresource
    body: JsonObject = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    try:
        status = cast("JsonObject", post(REVIEWS, body).get("status") or {})
    except BackendUnavailableError:
        raise
    except BackendError:  # it is asked to be kind: what is refused later says so itself
        return True
    return bool(status.get("allowed", True))


def user(post: Post) -> str:
    """Return the name by which the cluster knows the user; "" where it does not say."""
    body: JsonObject = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        status = cast("JsonObject", post(SELF, body).get("status") or {})
    except BackendError:
        return ""
    info = cast("JsonObject", status.get("userInfo") or {})
    return str(info.get("username") or "")


def role(lacking: Sequence[Permission], namespace: str) -> JsonObject:
    """Return the Role that gives permissions."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for one in lacking:
        verbs.setdefault((one.group, one.resource), []).append(one.verb)
    rules: list[JsonValue] = [
        {"apiGroups": [group], "resources": [resource], "verbs": list(given)}
        for (group, resource), given in verbs.items()
    ]
    metadata = {"name": ROLE, "namespace": namespace}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": rules}


def role_binding(namespace: str, user_name: str) -> JsonObject:
    """Return what gives the Role to a user; a service account is known by its long name."""
    group = "rbac.authorization.k8s.io"
    subject: dict[str, JsonValue] = {"kind": "User", "apiGroup": group, "name": user_name or "USER"}
    if user_name.startswith("system:serviceaccount:"):
        _, _, its_namespace, name = user_name.split(":", 3)
        subject = {"kind": "ServiceAccount", "namespace": its_namespace, "name": name}
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": ROLE, "namespace": namespace},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": ROLE},
        "subjects": [subject],
    }


def sentence(lacking: Sequence[Permission], namespace: str, user_name: str) -> str:
    """Return what a user may not do."""
    names = ", ".join(map(str, lacking[:_MOST_SHOWN]))
    more = f" and {len(lacking) - _MOST_SHOWN} more" if len(lacking) > _MOST_SHOWN else ""
    return f"{user_name or 'You'} may not {names}{more} in the namespace {namespace!r}."


def refusal(
    lacking: Sequence[Permission], namespace: str, user_name: str, besides: Sequence[Permission] = ()
) -> BackendUnavailableError:
    """Return what is said of missing permissions: verb and resource, and what gives them, for `kubectl apply`.

    Args:
        lacking: Those that are needed.
        namespace: Where.
        user_name: Who lacks them.
        besides: Those that are useful, which the Role gives, too.
    """
    objects: list[JsonValue] = [role([*lacking, *besides], namespace), role_binding(namespace, user_name)]
    # One document of one line: kubectl reads several JSON documents as one that is broken, and an error is cut short.
    both: JsonObject = {"apiVersion": "v1", "kind": "List", "items": objects}
    return BackendUnavailableError(
        sentence(lacking, namespace, user_name),
        "Expected a Role with these verbs: ask whoever administers it for `kubectl apply -f -` of this line:",
        json.dumps(both),
    )

"""Who may do what: tokens with rules, as RBAC has them."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from tests.labs.kubernetes.objects.errors import ApiError


@dataclass(frozen=True, slots=True)
class Rule:
    """Permission of a user; "*" stands for all."""

    verbs: tuple[str, ...] = ("*",)
    groups: tuple[str, ...] = ("*",)
    resources: tuple[str, ...] = ("*",)
    namespaces: tuple[str, ...] = ("*",)

    def allows(self, action: Action) -> bool:
        """Return whether an action is among what is allowed."""
        return (
            _holds(self.verbs, action.verb)
            and _holds(self.groups, action.group)
            and (_holds(self.resources, action.resource))
            and _holds(self.namespaces, action.namespace)
        )


def _holds(allowed: Sequence[str], value: str) -> bool:
    return "*" in allowed or value in allowed


@dataclass(frozen=True, slots=True)
class Action:
    """Action of a request; the resource with its subresource, such as pods/log."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class User:
    """Whom a token names, and what it may do."""

    name: str
    rules: tuple[Rule, ...] = (Rule(),)


class Access:
    """The tokens that are valid now. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: dict[str, User] = {}
        self._forbidden: set[tuple[str, str]] = set()

    def issue(self, user: User) -> str:
        """Return a new token of a user."""
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._users[token] = user
        return token

    def expire(self) -> None:
        """No token that was issued so far is valid any more."""
        with self._lock:
            self._users = {}

    def forbid(self, verb: str, resource: str) -> None:
        """Forbid everybody a verb on a resource, such as create on jobs."""
        with self._lock:
            self._forbidden.add((verb, resource))

    def allow_again(self) -> None:
        """Forbid nothing that rules allow."""
        with self._lock:
            self._forbidden = set()

    def user(self, authorization: str) -> User:
        """Whom a request is from.

        Raises:
            ApiError: 401: The token is not valid.
        """
        if not authorization:
            return User("system:anonymous", ())
        with self._lock:
            user = self._users.get(authorization.removeprefix("Bearer ").strip())
        if user is None:
            raise ApiError(401, "Unauthorized", "Unauthorized")
        return user

    def allows(self, user: User, action: Action) -> bool:
        """Return whether a user may do something."""
        with self._lock:
            refused = {(action.verb, action.resource), (action.verb, "*"), ("*", action.resource)} & self._forbidden
        return not refused and any(rule.allows(action) for rule in user.rules)

    def check(self, user: User, action: Action) -> None:
        """Refuse what a user may not do.

        Raises:
            ApiError: 403.
        """
        if self.allows(user, action):
            return
        qualified = f"{action.resource.split('/', maxsplit=1)[0]}.{action.group}" if action.group else action.resource
        subject = f'{qualified} "{action.name}"' if action.name else qualified
        place = f'in the namespace "{action.namespace}"' if action.namespace else "at the cluster scope"
        message = (
            f'{subject} is forbidden: User "{user.name}" cannot {action.verb} resource "{action.resource}" '
            f'in API group "{action.group}" {place}'
        )
        details = {"name": action.name, "group": action.group, "kind": action.resource}
        raise ApiError(403, "Forbidden", message, {key: value for key, value in details.items() if value})

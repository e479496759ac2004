"""Kubeconfigs of the double, mode 0600."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.server.access import Access, User
from tests.labs.kubernetes.server.certificates import write_private

_CREDENTIAL = "client.authentication.k8s.io/v1"


class Kubeconfigs:
    """Writes kubeconfigs with tokens.

    Args:
        folder: Where they lie.
        access: What issues tokens.
    """

    def __init__(self, folder: Path, access: Access) -> None:
        self._folder = folder
        self._access = access
        self._renewed: dict[Path, User] = {}

    def write(self, url: str, authority: bytes, user: User, namespace: str, name: str = "") -> Path:
        """Return a kubeconfig with a new token in it."""
        return self._write(url, authority, {"token": self._access.issue(user)}, namespace, name)

    def write_renewing(self, url: str, authority: bytes, user: User, namespace: str, name: str = "") -> Path:
        """Return a kubeconfig that asks a program for the token of the moment, as those of cloud providers do."""
        credential = self._folder / f"credential-{secrets.token_hex(4)}.json"
        self._renewed[credential] = user
        self._renew(credential, user)
        program = {"apiVersion": _CREDENTIAL, "command": "cat", "args": [str(credential)], "interactiveMode": "Never"}
        return self._write(url, authority, {"exec": program}, namespace, name)

    def renew(self) -> None:
        """Give those that ask a program new tokens."""
        for credential, user in self._renewed.items():
            self._renew(credential, user)

    def _renew(self, credential: Path, user: User) -> None:
        status = {"token": self._access.issue(user)}
        content = {"apiVersion": _CREDENTIAL, "kind": "ExecCredential", "status": status}
        write_private(credential, json.dumps(content).encode())

    def _write(self, url: str, authority: bytes, user: Json, namespace: str, name: str) -> Path:
        path = self._folder / (name or f"kubeconfig-{secrets.token_hex(4)}")
        trusted = self._folder / f"{path.name}.pem"
        write_private(trusted, authority)
        cluster = {"server": url, "certificate-authority": str(trusted)}
        context = {"cluster": "double", "user": "user", "namespace": namespace}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "double",
            "clusters": [{"name": "double", "cluster": cluster}],
            "users": [{"name": "user", "user": user}],
            "contexts": [{"name": "double", "context": context}],
        }
        write_private(path, json.dumps(content).encode())  # JSON is YAML
        return path

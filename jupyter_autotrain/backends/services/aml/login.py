"""Who this machine is to Azure: tokens of azure-identity, and requests that get a new one where one has expired."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, cast

from jupyter_autotrain.backends.services.http_client import UNAUTHORIZED, HttpService, RefusedError, Request
from jupyter_autotrain.errors import BackendError, MissingExtraError

_VARIABLE: Final = "AZURE_CLIENT_SECRET"
HINT: Final = (
    "run `az login`, or name the file of a service principal, `login_file:`; a manager takes no secret from a variable "
    f"as {_VARIABLE}"
)
STORAGE_SCOPE: Final = "https://storage.azure.com/.default"
_ASK_AGAIN_S = 300.0  # before a token expires


class Token(NamedTuple):
    """A token, as azure-identity gives it: `expires_on` is the time of the clock."""

    token: str
    expires_on: int


GetToken = Callable[[str], Token]
"""The method of azure-identity's credentials: returns a token of a scope."""


def credential_of(login_file: str) -> GetToken:
    """Return what gives tokens: a service principal by its file; else what azure-identity finds, such as `az login`.

    Args:
        login_file: The JSON that `az ad sp create-for-rbac --json-auth` prints; "" for none.

    Raises:
        BackendError: The file cannot be read.
        MissingExtraError: azure-identity is not installed.
    """
    try:
        from azure.identity import ClientSecretCredential, DefaultAzureCredential  # noqa: PLC0415 - slow, and an extra
    except ImportError:
        raise MissingExtraError("azure.identity", "aml", "Azure Machine Learning") from None
    logging.getLogger("azure").setLevel(logging.ERROR)  # it logs each of its requests
    if not login_file:
        has_secret = _VARIABLE in os.environ  # no manager gets it: what works here has to work there, too
        return cast("GetToken", DefaultAzureCredential(exclude_environment_credential=has_secret).get_token)
    try:
        found = json.loads(Path(login_file).expanduser().read_bytes())
        principal = [str(found[key]) for key in ("tenantId", "clientId", "clientSecret")]
        authority = str(found.get("activeDirectoryEndpointUrl") or "https://login.microsoftonline.com")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BackendError(
            f"{login_file} is not the file of a service principal: {type(error).__name__}.", "",
            "Make one: az ad sp create-for-rbac --json-auth",
        ) from error  # fmt: skip
    made = ClientSecretCredential(*principal, authority=authority, disable_instance_discovery=True)
    return cast("GetToken", made.get_token)


class Login:
    """Gives tokens; safe for several threads.

    Args:
        make: Makes what gives them, at the first one and after `forget`.
    """

    def __init__(self, make: Callable[[], GetToken]) -> None:
        self.make = make
        self._lock = threading.Lock()
        self._get_token: GetToken | None = None
        self._tokens: dict[str, Token] = {}

    def headers(self, scope: str) -> dict[str, str]:
        """Return the header with a token.

        Raises:
            BackendError: Nobody is logged in.
            MissingExtraError: azure-identity is not installed.
        """
        with self._lock:
            token = self._tokens.get(scope)
            if token is None or token.expires_on < time.time() + _ASK_AGAIN_S:
                token = self._tokens[scope] = self._new_token(scope)
            return {"Authorization": f"Bearer {token.token}"}

    def _new_token(self, scope: str) -> Token:
        if self._get_token is None:
            self._get_token = self.make()
        try:
            return self._get_token(scope)
        except Exception as error:  # azure-identity cannot be imported here to name its errors
            told = str(error).strip().splitlines() or [type(error).__name__]
            raise BackendError(f"Azure gives no token: {told[0][:300]}", "", f"Log in again: {HINT}.") from error

    def forget(self) -> None:
        """Get all tokens anew: one was refused."""
        with self._lock:
            self._get_token = None
            self._tokens.clear()


class AzureHttp(HttpService):
    """An interface of Azure.

    Args:
        address: Where it is.
        login: Gives its tokens.
        scope: Of them.
        ca_file: Certificates to trust; "" for those of the system.
    """

    def __init__(self, address: str, login: Login, scope: str, ca_file: str) -> None:
        super().__init__("Azure", address, lambda: login.headers(scope), HINT, ca_file)
        self._forget = login.forget

    def call(self, request: Request) -> bytes:
        """Return what a request is answered with; one whose token is refused is made once more, with a new one."""
        try:
            return super().call(request)
        except RefusedError as error:
            if error.code != UNAUTHORIZED:
                raise
        self._forget()
        return super().call(request)

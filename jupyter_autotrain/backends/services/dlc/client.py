"""Calls of PAI-DLC's interface by Alibaba Cloud's own SDK, which signs them; it is imported with the first one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.services.http_client import TOO_MANY, UNAUTHORIZED, ServiceClient
from jupyter_autotrain.errors import AutotrainError, MissingExtraError

_BAD_LOGIN = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "IncompleteSignature", "InvalidSecurityToken")
_THROTTLED = "Throttling"
_WAIT_MS = 10_000  # after a refusal that does not say how long


class DlcClient(ServiceClient):
    """The interface of PAI-DLC in one region; safe for several threads.

    Args:
        region: The region.
        endpoint: Where its interface is.
        login_file: The file with access keys; "" for where the SDK looks by itself.
        ca_file: Certificates to trust; "" for those of the SDK.
    """

    def __init__(self, region: str, endpoint: str, login_file: str, ca_file: str) -> None:
        super().__init__(
            "PAI-DLC", f"https://{endpoint}", f"put an access key into {login_file or '~/.alibabacloud/credentials'}"
        )
        self._region = region
        self._endpoint = endpoint
        self._login_file = str(Path(login_file).expanduser()) if login_file else ""
        self._ca_file = str(Path(ca_file).expanduser()) if ca_file else ""
        self._sdk: Any = None

    def call(self, action: str, *path: str, content: JsonObject | None = None) -> JsonObject:
        """Return what a call is answered with.

        Args:
            action: As the SDK calls it, such as `create_job`.
            path: The ids in its path.
            content: Its parameters, by the names that the interface has for them; None for a call without any.

        Raises:
            AnswerLostError: It may have come there, and its answer did not.
            BackendUnavailableError: The service does not want to be asked now.
            MissingExtraError: The SDK is not installed.
            RefusedError: It says no.
        """
        self._keep_away()
        try:
            from alibabacloud_pai_dlc20201203 import models  # noqa: PLC0415 - an extra, and slow to import
            from darabonba.exceptions import DaraException, UnretryableException  # noqa: PLC0415 - as above
            from darabonba.runtime import RuntimeOptions  # noqa: PLC0415 - as above
        except ImportError as error:
            raise MissingExtraError(error.name or "", "dlc", "A place of type dlc") from error
        arguments: list[object] = list(path)
        if content is not None:
            name = "".join(word.capitalize() for word in action.split("_"))
            arguments.append(getattr(models, f"{name}Request")().from_map(content))
        try:
            method = getattr(self._client(), f"{action}_with_options")
            answer_ms = round(1000 * self.answer_s)
            answer = method(*arguments, {}, RuntimeOptions(connect_timeout=answer_ms, read_timeout=answer_ms))
        except (DaraException, UnretryableException) as error:
            raise self._fault(action, error) from error
        return cast("JsonObject", answer.body.to_map())

    def _client(self) -> Any:  # noqa: ANN401 - the SDK has no types
        if self._sdk is None:
            from alibabacloud_credentials.client import Client as Credentials  # noqa: PLC0415 - an extra
            from alibabacloud_credentials.provider import ProfileCredentialsProvider  # noqa: PLC0415 - as above
            from alibabacloud_pai_dlc20201203.client import Client  # noqa: PLC0415 - as above
            from alibabacloud_tea_openapi.utils_models import Config  # noqa: PLC0415 - as above

            given = ProfileCredentialsProvider(profile_file=self._login_file) if self._login_file else None
            self._sdk = Client(Config(
                credential=Credentials(provider=given), region_id=self._region, endpoint=self._endpoint,
                ca=self._ca_file or None,
            ))  # fmt: skip
        return self._sdk

    def _fault(self, action: str, error: Any) -> AutotrainError:  # noqa: ANN401 - as above
        """Return what a fault of the SDK means."""
        code = str(getattr(error, "code", "") or "")
        status = getattr(error, "status_code", None)
        if status is None:
            inner = getattr(error, "inner_exception", error)
            if type(inner).__name__ != "CredentialException":
                return self._lost(getattr(inner, "message", inner))
            status = UNAUTHORIZED
        if code.startswith(_BAD_LOGIN):
            status = UNAUTHORIZED
        if status == UNAUTHORIZED:
            self._sdk = None  # keys are read anew
        if code.startswith(_THROTTLED):
            status = TOO_MANY
        wait_ms = float(getattr(error, "retry_after", None) or _WAIT_MS)
        return self._refusal(action, int(status), str(getattr(error, "message", error)), wait_ms / 1000)

"""The interface of a place that data are fetched from, and the places that there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

from jupyter_autotrain.core.data import DataOrigin
from jupyter_autotrain.errors import AutotrainError, DataError, MissingExtraError

Told = Callable[[int, int], object]


class FetchSource(Protocol):
    """A place that data are fetched from. Each method may raise whatever its library raises."""

    def revision(self, origin: DataOrigin) -> str:
        """Return what changes when the labels or files do."""
        ...

    def fetch(self, origin: DataOrigin, folder: Path, told: Told) -> Path:
        """Bring all of it into an empty folder, and return the file or folder that trials read.

        Args:
            origin: What is fetched.
            folder: The folder.
            told: Called as it goes on, with the bytes that have come and those of all; 0 where they are not known.
        """
        ...


class LabelSource(FetchSource, Protocol):
    """A place where people label samples."""

    def send(self, origin: DataOrigin, name: str, samples: Sequence[tuple[Path, float]]) -> str:
        """Add samples, each with its uncertainty, that are to be labelled as those of `origin`; say what they are."""
        ...


_FILES: Final = "fsspec"
_PACKAGES: Final = MappingProxyType({"cvat": "cvat_sdk", "label_studio": "label_studio_sdk", _FILES: "fsspec"})
_VARIABLES: Final = MappingProxyType(
    {"cvat": ("CVAT_HOST", "CVAT_ACCESS_TOKEN"), "label_studio": ("LABEL_STUDIO_URL", "LABEL_STUDIO_API_KEY")}
)


def located(origin: DataOrigin, environ: Mapping[str, str]) -> DataOrigin:
    """Return the origin with the address of its server.

    Raises:
        AutotrainError: Neither the header nor a variable says it.
    """
    if origin.kind == _FILES or origin.server:
        return origin
    name, _ = _VARIABLES[origin.kind]
    server = environ.get(name, "").rstrip("/")
    if not server:
        raise AutotrainError(
            f"data: it is not known where {origin.kind} is.",
            f"Its address in {name}, or as `server:`.",
            f"Set {name}, then submit again.",
        )
    return replace(origin, server=server)


def label_source(origin: DataOrigin, environ: Mapping[str, str]) -> AbstractContextManager[LabelSource]:
    """Connect to a server of labels. Raises what `fetch_source` raises."""
    if origin.kind == _FILES:
        raise AutotrainError(
            f"{origin.address} has files and no labels.", "A task of CVAT or a project of Label Studio.",
            "Name one in `data:`, as in {cvat: task/12}.",
        )  # fmt: skip
    found: AbstractContextManager[LabelSource] = _module(origin.kind).connect(origin.server, _token(origin, environ))
    return found


def fetch_source(origin: DataOrigin, environ: Mapping[str, str]) -> AbstractContextManager[FetchSource]:
    """Connect to the place of an origin.

    Args:
        origin: What is to be fetched.
        environ: The submitter's variables, which say where a server is and who asks.

    Raises:
        MissingExtraError: The library that reads it is not installed.
        AutotrainError: There is no address or token of the server.
    """
    if origin.kind != _FILES:
        return label_source(origin, environ)
    found: AbstractContextManager[FetchSource] = _module(origin.kind).connect()
    return found


def _module(kind: str):  # type: ignore[no-untyped-def]  # noqa: ANN202 - a module is typed by what it makes
    try:
        return import_module(f"{__package__}.{kind}")
    except ModuleNotFoundError as error:
        if error.name != _PACKAGES[kind]:
            raise
        raise MissingExtraError(_PACKAGES[kind], kind.replace("_", "-"), f"data: {kind}") from None


def _token(origin: DataOrigin, environ: Mapping[str, str]) -> str:
    """Return the token that is meant for a server: that of a variable goes to the server beside it alone."""
    address_name, token_name = _VARIABLES[origin.kind]
    is_own = origin.server == environ.get(address_name, "").rstrip("/")
    token = (environ.get(token_name, "") if is_own else "") or _kept_token(token_name, origin.server)
    if not token:
        raise DataError(
            f"data: there is no token for {origin.server}.",
            f"{token_name} beside {address_name}={origin.server}, or one in keyring.",
            f"Set it, or run: keyring set {token_name} {origin.server}",
        )
    return token


def _kept_token(name: str, server: str) -> str:
    try:
        import keyring  # noqa: PLC0415 - few have it
    except ModuleNotFoundError:
        return ""
    return keyring.get_password(name, server) or ""

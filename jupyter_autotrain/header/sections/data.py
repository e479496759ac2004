"""The entries of `data:`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from jupyter_autotrain.core.data import DataKind, DataOrigin, DataSource
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.header.document import KeyPath, UnfitError, shown
from jupyter_autotrain.header.sections.section import Section
from jupyter_autotrain.header.types import Name, Text

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_SCHEMES = ("https", "http", "file")
_GLOB = frozenset("*?[")
_KINDS = ("send", "path", "url", "clients", "cvat", "label_studio")
_LABELLED = re.compile(r"(task|project)/[1-9][0-9]{0,8}")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://")


def _sha256(value: object) -> str:
    text = str(value).removeprefix("sha256:")
    if not _SHA256.fullmatch(text):
        raise UnfitError("expected 64 hexadecimal digits", "`sha256sum FILE` prints them")
    return text.lower()


def _url(value: object) -> str:
    text = str(value)
    parts = urlsplit(text)
    if parts.scheme not in _SCHEMES or not PurePosixPath(parts.path).name:
        raise UnfitError("expected the URL of a file, by https, http or file")
    if parts.username or parts.password:
        raise UnfitError("expected a URL without a name and password", "fetch it inside the cell, with `secrets:`",
                         found="a URL with a name or password (not shown here)")  # fmt: skip
    return text


def _path_there(value: object) -> str:
    text = str(value) if isinstance(value, str | os.PathLike) else ""
    if not text.startswith(("/", "~")):
        raise UnfitError("expected a path from the root or from ~", "to send a file of yours: `NAME: ./file`")
    return text


def _path_here(value: object) -> str:
    text = str(value) if isinstance(value, str | os.PathLike) else ""
    if not text or "\0" in text:
        raise UnfitError("expected the path of a file or folder")
    if _GLOB & set(text):
        raise UnfitError("expected one file or folder", "name the folder that holds them")
    return text


def _labelled(value: object) -> str:
    text = str(value)
    if not _LABELLED.fullmatch(text):
        raise UnfitError("expected a task or project by its number, such as task/12 or project/3")
    return text


def _server(value: object) -> str:
    parts = urlsplit(str(value))
    if parts.scheme not in {"https", "http"} or not parts.hostname or parts.username or parts.password:
        raise UnfitError("expected the https:// or http:// address of a server, without a name and password",
                         found="an address that is not shown here")  # fmt: skip
    return str(value).rstrip("/")


class DataSection(Section):
    """One entry of `data:`. Exactly one of `send`, `path`, `url`, `clients`, `cvat` and `label_studio` is given."""

    send: Annotated[str, BeforeValidator(_path_here)] | None = Field(
        default=None,
        description="A file or folder, sent to where trials run once per content, as `NAME: ./file` too: one here, or "
        "at an address that fsspec opens (gs://, az://, hf://, ...), from which it is fetched first.",
        examples=["./train.parquet", "gs://bucket/images"],
    )
    path: Annotated[str, BeforeValidator(_path_there)] | None = Field(
        default=None,
        description="A file or folder that is already there, such as shared storage; nothing is sent.",
        examples=["/mnt/imagenet"],
    )
    clients: dict[Name, Annotated[str, BeforeValidator(_path_there)]] | None = Field(
        default=None,
        description="With mode federated: of each client the file or folder that lies at its place; nothing is sent, "
        "and no client learns the path of another.",
        examples=["{hospital-a: /srv/scans, hospital-b: ~/scans}"],
    )
    url: Annotated[str, BeforeValidator(_url)] | None = Field(
        default=None,
        description="A file that the trial's machine fetches once per content.",
        examples=["https://example.org/weights.pt"],
    )
    sha256: Annotated[str, BeforeValidator(_sha256)] | None = Field(
        default=None, description="The digest of the file at `url`, which needs one.", examples=["9f86d0..."]
    )

    cvat: Annotated[str, BeforeValidator(_labelled)] | None = Field(
        default=None,
        description="A task or project of CVAT, exported with its images to here when its labels have changed.",
        examples=["task/12", "project/3"],
    )
    label_studio: Annotated[str, BeforeValidator(_labelled)] | None = Field(
        default=None,
        description="A project of Label Studio, exported to here when its labels have changed.",
        examples=["project/7"],
    )
    format: Text | None = Field(
        default=None,
        description="Of labels: coco (CVAT's default), yolo, voc, or the server's own name; Label Studio's default is "
        "json.",
        examples=["coco", "CVAT for images 1.1"],
    )
    server: Annotated[str, BeforeValidator(_server)] | None = Field(
        default=None,
        description="Of labels: the server, else that of CVAT_HOST or LABEL_STUDIO_URL. The token of "
        "CVAT_ACCESS_TOKEN or LABEL_STUDIO_API_KEY goes to these alone; another server's is taken from keyring.",
        examples=["https://app.cvat.ai"],
    )
    license: Text | None = Field(
        default=None,
        description="The license of labels, or of what is fetched, for the run card; else what the export says.",
        examples=["CC-BY-4.0"],
    )

    @property
    def origin(self) -> DataOrigin | None:
        """The place that it is fetched from to this machine."""
        known = (
            ("cvat", self.cvat, self.format or "coco"),
            ("label_studio", self.label_studio, self.format or "json"),
            ("fsspec", self.send if self.send and _ADDRESS.match(self.send) else None, ""),
        )
        for kind, address, form in known:
            if address is not None:
                return DataOrigin(kind, address, self.server or "", form, self.license or "")
        return None

    @property
    def local(self) -> str:
        """The path here that is sent; "" where there is none yet."""
        return self.send if self.send and self.origin is None else ""

    def to_source(self, name: str) -> DataSource:
        """Return the source that it names; what a copy holds is not read yet."""
        if self.url is not None:
            file_name = unquote(PurePosixPath(urlsplit(self.url).path).name)
            return DataSource(name, DataKind.URL, url=self.url, sha256=self.sha256 or "", file_name=file_name)
        if self.path is not None or self.clients is not None:
            return DataSource(name, DataKind.PATH, path=self.path or "")
        return DataSource(name, DataKind.COPY, local_path=self.local, origin=self.origin)


def _read_entry(value: object) -> object:
    """Text stands for a file or folder to send."""
    given = {"send": os.fspath(value)} if isinstance(value, str | os.PathLike) else value
    if isinstance(given, DataSection):
        return given
    if not isinstance(given, dict):
        raise UnfitError("expected a path, or a mapping with one of path, url, clients, cvat and label_studio")
    _check_kind(given)
    return given


def _check_kind(given: Mapping[str, object]) -> None:
    kinds = [key for key in _KINDS if given.get(key) is not None]
    unknown = set(given) - {*DataSection.model_fields}
    if len(kinds) != 1 and not unknown:
        raise UnfitError(f"expected exactly one of {', '.join(_KINDS[:-1])} and {_KINDS[-1]}")
    _check_labels(given, is_labelled=kinds[:1] in (["cvat"], ["label_studio"]))
    if kinds == ["url"] and given.get("sha256") is None:
        raise UnfitError(
            "expected `sha256:` beside `url:`, so that all trials read the same", "`curl -L URL | sha256sum` prints it"
        )
    if kinds != ["url"] and given.get("sha256") is not None:
        raise UnfitError("expected `sha256:` only beside `url:`", "remove it")


def _check_labels(given: Mapping[str, object], *, is_labelled: bool) -> None:
    for key in ("format", "server"):
        if given.get(key) is not None and not is_labelled:
            raise UnfitError(f"expected `{key}:` only beside `cvat:` or `label_studio:`", "remove it")
    if given.get("label_studio") is not None and not str(given["label_studio"]).startswith("project/"):
        raise UnfitError("expected a project of Label Studio, such as project/7", "its tasks are single samples")


class _Entry:
    """Annotates an entry: text stands for a file or folder to send."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(_read_entry, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, object]:
        return {"anyOf": [{"type": "string"}, handler(schema)]}


DataEntry = Annotated[DataSection, _Entry()]


def missing_here(data: Mapping[str, DataSection], folder: Path) -> Iterator[tuple[KeyPath, str, str, str]]:
    """Files and folders to send that are not there: (path of the key, found, expected, action)."""
    for name, entry in data.items():
        if not entry.local:
            continue
        path = folder / Path(entry.local).expanduser()
        if path.exists():
            continue
        beside = sorted(one.name for one in path.parent.iterdir()) if path.parent.is_dir() else []
        near = closest_match(path.name, beside)
        expected = f"did you mean {near!r}?" if near else "expected a file or folder here"
        yield ("data", name), f"data.{name}: {shown(entry.local)} is not there", expected, ""

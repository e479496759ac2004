"""The section `data:`: what trials read besides their code, and how it gets to where they run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from jupyter_autotrain.core.data import DataKind, DataSource
from jupyter_autotrain.core.matching import closest_match
from jupyter_autotrain.header.faults import KeyPath, UnfitError, shown
from jupyter_autotrain.header.sections import Section

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_SCHEMES = ("https", "http", "file")
_GLOB = frozenset("*?[")


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


class DataSection(Section):
    """One entry of `data:`. Exactly one of `send`, `path` and `url` is given."""

    send: Annotated[str, BeforeValidator(_path_here)] | None = Field(
        default=None,
        description="A file or folder here, sent to where trials run once per content, as `NAME: ./file` too.",
        examples=["./train.parquet"],
    )
    path: Annotated[str, BeforeValidator(_path_there)] | None = Field(
        default=None,
        description="A file or folder that is already there, such as shared storage; nothing is sent.",
        examples=["/mnt/imagenet"],
    )
    url: Annotated[str, BeforeValidator(_url)] | None = Field(
        default=None,
        description="A file that the trial's machine fetches once per content.",
        examples=["https://example.org/weights.pt"],
    )
    sha256: Annotated[str, BeforeValidator(_sha256)] | None = Field(
        default=None, description="The digest of the file at `url`, which needs one.", examples=["9f86d0..."]
    )

    def to_source(self, name: str) -> DataSource:
        """The source that it names; what a copy holds is not read yet."""
        if self.url is not None:
            file_name = unquote(PurePosixPath(urlsplit(self.url).path).name)
            return DataSource(name, DataKind.URL, url=self.url, sha256=self.sha256 or "", file_name=file_name)
        if self.path is not None:
            return DataSource(name, DataKind.PATH, path=self.path)
        return DataSource(name, DataKind.COPY, local_path=self.send or "")


def _read_entry(value: object) -> object:
    """Text stands for a file or folder to send."""
    given = {"send": os.fspath(value)} if isinstance(value, str | os.PathLike) else value
    if isinstance(given, DataSection):
        return given
    if not isinstance(given, dict):
        raise UnfitError("expected a path, or a mapping with `path:`, or with `url:` and `sha256:`")
    kinds = [key for key in ("send", "path", "url") if given.get(key) is not None]
    unknown = set(given) - {*DataSection.model_fields}
    if len(kinds) != 1 and not unknown:
        raise UnfitError("expected exactly one of send, path and url")
    if kinds == ["url"] and given.get("sha256") is None:
        raise UnfitError(
            "expected `sha256:` beside `url:`, so that all trials read the same", "`curl -L URL | sha256sum` prints it"
        )
    if kinds != ["url"] and given.get("sha256") is not None:
        raise UnfitError("expected `sha256:` only beside `url:`", "remove it")
    return given


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
        if entry.send is None:
            continue
        path = folder / Path(entry.send).expanduser()
        if path.exists():
            continue
        beside = sorted(one.name for one in path.parent.iterdir()) if path.parent.is_dir() else []
        near = closest_match(path.name, beside)
        expected = f"did you mean {near!r}?" if near else "expected a file or folder here"
        yield ("data", name), f"data.{name}: {shown(entry.send)} is not there", expected, ""

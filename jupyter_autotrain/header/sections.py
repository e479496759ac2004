"""The mappings inside a header: resources, budget, ship, data; `parallel` has a module of its own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from jupyter_autotrain.core.data import DataKind, DataOrigin, DataSource
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.core.tuner import EarlyStopOptions
from jupyter_autotrain.header.document import KeyPath, UnfitError, resolve, shown
from jupyter_autotrain.header.quantities import OneOf
from jupyter_autotrain.header.types import AS_INTEGER, AS_NUMBER, Count, Duration, Few, Name, Size, Text, Texts, Workers

ADJACENT = OneOf(("ring", "mesh"))
EARLY_STOPS = ("none", "median", "asha", "hyperband", "curve", "threshold", "patience")
EARLY_STOP_RULE = OneOf(EARLY_STOPS, (("medianstop", "median"), ("curvefitting", "curve")), r"optuna:[A-Za-z]\w{0,80}")


class Section(BaseModel):
    """A mapping of known keys."""

    # Most experiments use few of the sections: their checkers are built when they are first used.
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, arbitrary_types_allowed=True)


class ResourcesSection(Section):
    """The needs of one trial."""

    cpus: Annotated[float, Field(gt=0, le=100_000), AS_NUMBER] | None = Field(
        default=None, description="CPU cores.", examples=["2"]
    )
    memory: Size | None = Field(default=None, description="Memory; a trial that takes more is ended.", examples=["8GB"])
    gpus: Few = Field(
        default=0, description="Number of GPUs, on each node; all workers of a node see them all.", examples=["1"]
    )
    gpu_memory: Size | None = Field(default=None, description="Least memory of each GPU.", examples=["16GB.."])
    adjacent: Annotated[str, ADJACENT] | None = Field(
        default=None,
        description="GPUs (and hosts) that are neighbours by their links: on a ring, or in a rectangle of a mesh.",
        examples=["ring"],
    )
    nodes: Workers = Field(default=1, description="Number of hosts that share one trial.", examples=["2"])
    workers_per_node: Workers = Field(
        default=1, description="Number of processes (ranks) of one trial on each of its hosts.", examples=["4"]
    )


class BudgetSection(Section):
    """When the experiment ends before its trials are used up."""

    time: Duration | None = Field(default=None, description="Wall-clock time of the experiment.", examples=["2h"])
    failures: Count | None = Field(default=None, description="Give up after this many failed trials.", examples=["3"])


class EarlyStopSection(Section):
    """When trials that fall behind are ended."""

    rule: Annotated[str, EARLY_STOP_RULE] = Field(
        default="median", description="The rule that finds them.", examples=["median"]
    )
    warmup_steps: Annotated[int, Field(ge=0, le=10**12), AS_INTEGER] = Field(
        default=0, description="No trial is stopped before it reports this step.", examples=["5"]
    )
    min_trials: Count | None = Field(
        default=None,
        description="How many other trials must have come as far; 3 with median, 1 with curve, else 2.",
        examples=["3"],
    )
    lower: Annotated[float, AS_NUMBER] | None = Field(
        default=None, description="Rule threshold: a trial whose value is below this is stopped.", examples=["0.1"]
    )
    upper: Annotated[float, AS_NUMBER] | None = Field(
        default=None, description="Rule threshold: a trial whose value is above this is stopped.", examples=["10"]
    )
    patience: Count = Field(
        default=10, description="Rule patience: how many reports a trial may not become better.", examples=["5"]
    )
    min_delta: Annotated[float, Field(ge=0), AS_NUMBER] = Field(
        default=0.0, description="Rule patience: a value is better when it is so by more than this.", examples=["0.01"]
    )
    options: Annotated[dict[str, Any], BeforeValidator(resolve)] = Field(
        default_factory=dict,
        description="Arguments of a pruner of Optuna, with `rule: 'optuna:CLASS'`.",
        examples=["{n_startup_trials: 3}"],
    )

    def to_options(self) -> EarlyStopOptions:
        """Return the options as the spec keeps them."""
        return EarlyStopOptions(
            self.warmup_steps, self.min_trials, self.lower, self.upper, self.patience, self.min_delta, self.options
        )


class ShipLimits(Section):
    """The limits of what may be sent."""

    files: Count = Field(default=2000, description="Number of files.", examples=["5000"])
    size: Size = Field(default=300_000_000, description="Bytes of all files and captured data.", examples=["1GB"])


class ShipSection(Section):
    """Files that travel with the cell."""

    files: Texts = Field(
        default=(), description="Files, folders or globs beside the notebook.", examples=["[data/*.csv]"]
    )
    ignore: Texts = Field(default=(), description="Patterns (as in .gitignore) that stay here.", examples=["['*.tmp']"])
    limits: ShipLimits = Field(default=ShipLimits(), description="How much may be sent.", examples=["{size: 1GB}"])

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return what to send, then what stays here, marked by `!`."""
        return (*self.files, *(f"!{pattern}" for pattern in self.ignore))


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

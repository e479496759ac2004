"""Options that name places for files: volumes of a trial's pods, and the storage for code and results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from jupyter_autotrain.backends.kubernetes.options.option_types import ObjectName, from_true
from jupyter_autotrain.header.document import UnfitError
from jupyter_autotrain.header.quantities import OneOf
from jupyter_autotrain.header.sections.section import Section
from jupyter_autotrain.header.types import LocalPath, Size, Text, Truth


def _absolute(value: object) -> str:
    if not isinstance(value, str) or not value.startswith("/"):
        raise UnfitError("expected an absolute path such as /data")
    return str(value)


def _relative(value: object) -> str:
    text = value if isinstance(value, str) else ""
    if not text or text.startswith("/") or ".." in text.split("/"):
        raise UnfitError("expected a path inside the volume, such as team/ada")
    return str(text)


def _export(value: object) -> object:
    """Take an NFS export as mount writes it, SERVER:/PATH."""
    if not isinstance(value, str):
        return value
    server, colon, path = value.partition(":")
    if not colon:
        raise UnfitError("expected an export such as nfs.example.com:/exports/team")
    return {"server": server, "path": path}


def _of_url(value: object) -> object:
    """Take a URL for a mapping with nothing else."""
    return {"url": value} if isinstance(value, str) else value


def _url(value: object) -> str:
    text = value if isinstance(value, str) else ""
    if not text.startswith(("https://", "http://")):
        raise UnfitError("expected a URL such as https://files.example.com/team/")
    return str(text)


AbsolutePath = Annotated[str, BeforeValidator(_absolute)]
RelativePath = Annotated[str, BeforeValidator(_relative)]
Url = Annotated[str, BeforeValidator(_url)]


class NfsOptions(Section):
    """An export of an NFS server."""

    server: Text = Field(description="The server.", examples=["nfs.example.com"])
    path: AbsolutePath = Field(description="The exported folder.", examples=["/exports/team"])


class EmptyDirOptions(Section):
    """A folder that begins empty and is deleted with the pod."""

    size: Size | None = Field(default=None, description="The most that it may hold.", examples=["10GB"])
    medium: Annotated[str, OneOf(("disk", "memory"))] = Field(
        default="disk", description="Where it lies: disk or memory.", examples=["memory"]
    )


class AzureFileOptions(Section):
    """A file share of Azure."""

    share: Text = Field(description="The name of the share.", examples=["team"])
    secret: ObjectName = Field(
        description="The Secret with the keys azurestorageaccountname and azurestorageaccountkey.",
        examples=["azure-files"],
    )


class S3Options(Section):
    """A bucket of S3, or of what speaks its protocol."""

    bucket: Text = Field(description="The bucket.", examples=["team-training"])
    prefix: RelativePath | None = Field(default=None, description="Where in the bucket.", examples=["autotrain"])
    endpoint: Url | None = Field(
        default=None, description="Its address where it is not Amazon's.", examples=["https://minio.example.com"]
    )
    region: Text | None = Field(default=None, description="Its region.", examples=["eu-central-1"])
    secret: ObjectName | None = Field(
        default=None,
        description="The Secret with the keys AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, for the pods.",
        examples=["s3-team"],
    )


class HttpOptions(Section):
    """A folder of a web server."""

    url: Url = Field(description="The folder; it takes PUT.", examples=["https://files.example.com/team/"])
    secret: ObjectName | None = Field(
        default=None, description="The Secret whose key AUTHORIZATION is the header of that name.", examples=["files"]
    )


_Nfs = Annotated[NfsOptions, BeforeValidator(_export, json_schema_input_type=str | NfsOptions)]
_EmptyDir = Annotated[EmptyDirOptions, BeforeValidator(from_true, json_schema_input_type=bool | EmptyDirOptions)]


_Http = Annotated[HttpOptions, BeforeValidator(_of_url, json_schema_input_type=str | HttpOptions)]


def _one_of(section: Section, names: Iterable[str]) -> None:
    """Check that exactly one of these keys is given.

    Raises:
        UnfitError: None is, or several are.
    """
    given = [name for name in names if getattr(section, name) is not None]
    if len(given) == 1:
        return
    found = f"{' and '.join(given)} together" if given else "neither of them"
    raise UnfitError(f"expected one of {', '.join(names)}", found=found)


class VolumeOptions(Section):
    """A volume that the trial sees as a folder."""

    path: AbsolutePath = Field(description="Where the trial finds it.", examples=["/data"])
    pvc: ObjectName | None = Field(default=None, description="A PersistentVolumeClaim.", examples=["datasets"])
    nfs: _Nfs | None = Field(default=None, description="An NFS export.", examples=["nfs.example.com:/exports/team"])
    host_path: AbsolutePath | None = Field(default=None, description="A folder of the node.", examples=["/mnt/fast"])
    empty_dir: _EmptyDir | None = Field(
        default=None, description="A folder that is deleted with the pod.", examples=["{size: 10GB}"]
    )
    secret: ObjectName | None = Field(default=None, description="A Secret: a file per key.", examples=["licences"])
    config_map: ObjectName | None = Field(
        default=None, description="A ConfigMap: a file per key.", examples=["settings"]
    )
    sub_path: RelativePath | None = Field(
        default=None, description="The folder inside the volume, where it is not the whole.", examples=["team/ada"]
    )
    read_only: Truth = Field(default=False, description="The trial cannot write there.", examples=["true"])

    @model_validator(mode="after")
    def _one_source(self) -> VolumeOptions:
        _one_of(self, ("pvc", "nfs", "host_path", "empty_dir", "secret", "config_map"))
        return self


class StorageOptions(Section):
    """The storage of code, data and results that are too big for the objects of the cluster."""

    pvc: ObjectName | None = Field(
        default=None, description="A PersistentVolumeClaim that several pods can write.", examples=["training"]
    )
    nfs: _Nfs | None = Field(default=None, description="An NFS export.", examples=["nfs.example.com:/exports/team"])
    host_path: AbsolutePath | None = Field(
        default=None, description="A folder that all nodes share.", examples=["/mnt/shared"]
    )
    azure_file: AzureFileOptions | None = Field(
        default=None, description="A file share of Azure.", examples=["{share: team, secret: azure-files}"]
    )
    s3: S3Options | None = Field(default=None, description="A bucket.", examples=["{bucket: team, secret: s3-team}"])
    http: _Http | None = Field(
        default=None, description="A folder of a web server that takes PUT.", examples=["https://files.example.com/t/"]
    )
    sub_path: RelativePath | None = Field(
        default=None, description="The folder inside it, where it is not the whole.", examples=["team/ada"]
    )
    local_path: LocalPath | None = Field(
        default=None, description="Where this machine has the same folder mounted.", examples=["/mnt/team"]
    )

    @model_validator(mode="after")
    def _one_source(self) -> StorageOptions:
        _one_of(self, ("pvc", "nfs", "host_path", "azure_file", "s3", "http"))
        return self

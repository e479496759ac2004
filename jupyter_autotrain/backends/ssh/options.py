"""Options of an SSH profile. They name key files and hosts, never a secret."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from jupyter_autotrain.agent.objects.data_cache import DEFAULT_LIMIT_BYTES
from jupyter_autotrain.backends.local.options import ReuseOptions
from jupyter_autotrain.backends.ssh.address import (
    DEFAULT_CACHE_LIMIT_BYTES,
    DEFAULT_PYTHON,
    DEFAULT_WORKDIR,
    TransportKind,
    named_host,
)
from jupyter_autotrain.header.sections.section import Section
from jupyter_autotrain.header.types import AS_INTEGER, Duration, LocalPath, Rate, RemotePath, Size, Text, Truth

Port = Annotated[int, Field(ge=1, le=65_535), AS_INTEGER]


class HostOptions(Section):
    """One host, with what is different from the other hosts of the profile."""

    host: Text = Field(description="Its name in the SSH configuration, or in the network.", examples=["gpu1"])
    user: Text | None = Field(default=None, description="The account there.", examples=["ada"])
    port: Port | None = Field(default=None, description="The port of its SSH server.", examples=["2222"])
    key_file: LocalPath | None = Field(default=None, description="A private key's file.", examples=["~/.ssh/id_lab"])
    python: RemotePath | None = Field(
        default=None, description="The interpreter there.", examples=["/opt/venv/bin/python"]
    )
    workdir: RemotePath | None = Field(
        default=None, description="The folder there for all files.", examples=["/scratch/at"]
    )
    address: Text | None = Field(
        default=None,
        description="Its address as the other hosts reach it, where one trial runs on several hosts.",
        examples=["10.0.0.11"],
    )


_Host = Annotated[HostOptions, BeforeValidator(named_host, json_schema_input_type=str | HostOptions)]


class SshOptions(ReuseOptions):
    """Options of the SSH backend; each host may have its own."""

    header_keys: ClassVar[tuple[str, ...]] = ()

    hosts: Annotated[tuple[_Host, ...], Field(min_length=1)] = Field(
        description="The hosts.", examples=["[gpu1, {host: gpu2, port: 2222}]"]
    )
    transport: TransportKind = Field(
        default=TransportKind.PARAMIKO, description="What connects: paramiko or openssh.", examples=["openssh"]
    )
    user: Text | None = Field(default=None, description="The account on the hosts.", examples=["ada"])
    port: Port | None = Field(default=None, description="The port of their SSH servers.", examples=["2222"])
    key_file: LocalPath | None = Field(default=None, description="A private key's file.", examples=["~/.ssh/id_lab"])
    config_file: LocalPath | None = Field(
        default=None, description="An SSH configuration in the place of your own.", examples=["./ssh_config"]
    )
    network: Rate | None = Field(
        default=None,
        description="Bandwidth between the hosts, for plans; else that of the GPUs' data sheet.",
        examples=["100Gbit/s"],
    )
    python: RemotePath = Field(
        default=DEFAULT_PYTHON, description="The interpreter on the hosts.", examples=["/opt/py/bin/python"]
    )
    lease_s: Annotated[float, Field(gt=0)] | None = Field(
        default=None,
        description="Ends trials there when no manager had contact for so many seconds; without it they go on.",
        examples=["3600"],
    )
    lost_after: Duration | None = Field(
        default=None,
        description="A trial on a host that has not answered for so long is lost, and frees what it holds on others; "
        "without contact for so long it ends itself. Without this option it is waited for.",
        examples=["30 min"],
    )
    workdir: RemotePath = Field(
        default=DEFAULT_WORKDIR, description="The folder there for all files.", examples=["/scratch/ada/at"]
    )
    cache_limit: Size = Field(
        default=DEFAULT_CACHE_LIMIT_BYTES,
        description="How much code each host keeps; the least recently used goes first, never what a trial uses.",
        examples=["5GB"],
    )
    reuse: Truth = Field(
        default=False, description="Begin trials on a host from processes that run on there.", examples=["true"]
    )
    data_cache_limit: Size = Field(
        default=DEFAULT_LIMIT_BYTES,
        description="How much data (`data:`) each host keeps; the least recently used goes first.",
        examples=["500GB"],
    )

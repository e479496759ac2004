"""Options of a Slurm profile. They name partitions, accounts and hosts, never a secret."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from jupyter_autotrain.backends.slurm.job_script import IDLE_S, OWN_OPTIONS
from jupyter_autotrain.backends.ssh.address import TransportKind
from jupyter_autotrain.backends.ssh.options import Port
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.header.document import UnfitError
from jupyter_autotrain.header.sections.section import Section
from jupyter_autotrain.header.types import Duration, LocalPath, Name, Pilots, RemotePath, Text, Truth

_COMMON = ("--constraint", "--qos", "--exclude", "--nodelist", "--reservation", "--nice", "--exclusive", "--licenses")


def _option(value: object) -> str:
    """Return one option of `sbatch`, on one line, that the backend does not set itself."""
    text = value if isinstance(value, str) else ""
    name = text.split("=")[0].split(" ")[0]
    if not name.startswith("-") or "\n" in text:
        near = closest_match(f"--{name.lstrip('-')}", _COMMON)
        raise UnfitError(f"expected an option of sbatch such as {near or '--constraint=a100'}")
    if name in OWN_OPTIONS:
        raise UnfitError(f"expected no {name}: it follows from the header and the other options", "leave it out")
    return text


def _line(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or "\n" in value:
        raise UnfitError("expected a line of shell such as module load cuda")
    return value


Extra = Annotated[str, BeforeValidator(_option)]
Line = Annotated[str, BeforeValidator(_line)]


class SlurmOptions(Section):
    """Options of the Slurm backend."""

    header_keys: ClassVar[tuple[str, ...]] = (
        "partition", "account", "time", "gpu_type", "extra", "setup", "requeue",
    )  # fmt: skip

    via: Text | None = Field(
        default=None, description="The login node, by SSH; none: Slurm's commands are here.", examples=["login1"]
    )
    partition: Name | None = Field(default=None, description="The partition of jobs.", examples=["gpu"])
    account: Name | None = Field(default=None, description="The account that jobs are charged to.", examples=["lab42"])
    time: Duration | None = Field(
        default=None,
        description="Time limit of a job where the header has no `timeout:`; of a long job (`reuse`), 1h by default.",
        examples=["8h"],
    )
    gpu_type: Name | None = Field(default=None, description="The kind of GPU, as in Slurm's GRES.", examples=["a100"])
    extra: Annotated[tuple[Extra, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)] = (
        Field(default=(), description="Further options of sbatch.", examples=["[--constraint=ib, --qos=long]"])
    )
    setup: Annotated[tuple[Line, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)] = (
        Field(default=(), description="Commands at the beginning of a job.", examples=["[module load cuda]"])
    )
    python: RemotePath | None = Field(
        default=None, description="The interpreter on the nodes.", examples=["/opt/venv/bin/python"]
    )
    workdir: RemotePath | None = Field(
        default=None, description="A folder that login node and nodes share.", examples=["/scratch/ada/autotrain"]
    )
    requeue: Truth = Field(
        default=False, description="Slurm may begin a trial again after preemption or a failed node.", examples=["true"]
    )
    reuse: Pilots = Field(
        default=0,
        description="Trials run one after another in so many long jobs at most; 0: each is a job of its own.",
        examples=["4"],
    )
    reuse_idle: Duration = Field(
        default=IDLE_S, description="How long such a job waits for another trial before it ends.", examples=["5m"]
    )
    transport: TransportKind = Field(
        default=TransportKind.PARAMIKO, description="What connects to `via`: paramiko or openssh.", examples=["openssh"]
    )
    user: Text | None = Field(default=None, description="The account on `via`.", examples=["ada"])
    port: Port | None = Field(default=None, description="The port of the SSH server of `via`.", examples=["2222"])
    key_file: LocalPath | None = Field(
        default=None, description="A private key's file, for `via`.", examples=["~/.ssh/id_lab"]
    )
    config_file: LocalPath | None = Field(
        default=None, description="An SSH configuration in the place of your own.", examples=["./ssh_config"]
    )

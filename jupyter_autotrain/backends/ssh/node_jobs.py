"""The jobs on single hosts that make up one on several, and what is done on one host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, cast

from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.core.backend import CancelReceipt, Chunk, Cursor, JobRef
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.spec import NodePlacement, TrialSpec
from jupyter_autotrain.errors import BackendUnavailableError

SEPARATOR = "@"  # between a job's name and the number of its node


class Nodes(Protocol):
    """What is done on one host."""

    name: str

    def job_name(self, job_id: str) -> str:
        """A job's name on its host."""
        ...

    def link(self, node: str) -> HostLink:
        """The link to a host, by the host's name."""
        ...

    def start_on(
        self, node: NodePlacement, job: str, trial: TrialSpec, secrets: Mapping[str, str], layout: JsonObject
    ) -> None:
        """Start the supervisor on a host."""
        ...

    def put(self, ref: JobRef, path: str, data: bytes) -> None:
        """Write a file into the trial directory."""
        ...

    def chunks(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        """What is new of streams, each on one host."""
        ...

    def cancel(self, ref: JobRef, grace_s: float) -> CancelReceipt:
        """End what runs on the host."""
        ...


def node_refs(ref: JobRef) -> list[JobRef]:
    """The jobs on the single hosts, that of rank 0 first; the job itself where it is on one."""
    nodes = cast("Sequence[tuple[str, str]]", ref.data.get("nodes") or ())
    return [JobRef(ref.backend, ref.job_id, {"host": node, "job": job}) for node, job in nodes] or [ref]


def names_of_nodes(name: str, nodes: int) -> list[str]:
    """The names of a job on its hosts, in the order of its placement."""
    return [name] if nodes == 1 else [f"{name}{SEPARATOR}{number}" for number in range(nodes)]


def may_lack(ref: JobRef, one: JobRef) -> tuple[type[Exception], ...]:
    """What may keep the files of one host from being read: of an elastic trial each host but the first may be lost."""
    return (BackendUnavailableError,) if ref.data.get("elastic") and one != node_refs(ref)[0] else ()


def job_id_of(name: str) -> str:
    """The id of the job that has this name on one of its hosts."""
    return name.partition("/")[2].partition(SEPARATOR)[0]


def of_stream(cursor: Cursor) -> Cursor:
    """Where a stream of a rank lies."""
    rank = cursor.stream.partition("-")[2]
    refs = node_refs(cursor.ref)
    workers = cast("int", cursor.ref.data.get("workers") or 1)
    number = int(rank) // workers if rank.isdigit() else 0
    return replace(cursor, ref=refs[min(number, len(refs) - 1)])


def read_streams(cursors: Sequence[Cursor], chunks: Callable[[Sequence[Cursor]], list[Chunk]]) -> list[Chunk]:
    """What is new of each stream, from the host that has it."""
    found = chunks([of_stream(cursor) for cursor in cursors])
    return [replace(chunk, cursor=cursor) for cursor, chunk in zip(cursors, found, strict=True)]

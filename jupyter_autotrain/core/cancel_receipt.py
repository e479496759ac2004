"""The proof of a cancel. Travels to hosts, where Python may be as old as 3.9."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jupyter_autotrain.core.json import JsonObject, JsonValue


@dataclass(frozen=True)
class CancelReceipt:
    """Proof of a cancel: which processes were ended, which needed force, how long it took, what is left.

    `unreachable_nodes` did not answer: what runs there goes on.
    """

    pids_ended: tuple[int, ...] = ()
    pids_killed: tuple[int, ...] = ()
    pids_left: tuple[int, ...] = ()
    elapsed_s: float = 0.0
    note: str = ""
    unreachable_nodes: tuple[str, ...] = ()


def receipt_of(detail: JsonObject) -> CancelReceipt:
    """The receipt in a status file (see `core.wire`), whatever else lies there; an empty one when there is none."""
    receipt = detail.get("receipt")
    return CancelReceipt(_pids(receipt, "ended"), _pids(receipt, "killed"), _pids(receipt, "left"))


def _pids(receipt: JsonValue, kind: str) -> tuple[int, ...]:
    found = receipt.get(kind) if isinstance(receipt, Mapping) else None
    return tuple(pid for pid in found if isinstance(pid, int)) if isinstance(found, list) else ()

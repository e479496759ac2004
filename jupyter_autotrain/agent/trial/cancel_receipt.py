"""The proof of a cancel. Travels to hosts, where Python may be as old as 3.9."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jupyter_autotrain.agent.json import JsonObject, JsonValue


@dataclass(frozen=True)
class CancelReceipt:
    """The proof of a cancel: the processes that were ended, those that needed force, the time, those that are left.

    `unreachable_nodes` did not answer: the processes there go on.
    """

    pids_ended: tuple[int, ...] = ()
    pids_killed: tuple[int, ...] = ()
    pids_left: tuple[int, ...] = ()
    elapsed_s: float = 0.0
    note: str = ""
    unreachable_nodes: tuple[str, ...] = ()

    def to_json(self) -> list[JsonValue]:
        """Return what an agent answers, which is what the receipt is made of again."""
        return [self.pids_ended, self.pids_killed, self.pids_left, self.elapsed_s, self.note]


def of_end(status: Mapping[str, JsonValue], elapsed_s: float, note: str = "") -> CancelReceipt:
    """Return the receipt of a cancel by the final status of the trial; a note says where it ended by itself."""
    cancelled = status["state"] == "CANCELLED"
    meanwhile = "" if cancelled else f"it ended by itself meanwhile: {status['state']}"
    return replace(receipt_of(status), elapsed_s=elapsed_s, note=note or meanwhile)


def receipt_of(detail: JsonObject) -> CancelReceipt:
    """Return the receipt in a status file (see `agent.wire`), whatever else lies there.

    The receipt is empty where there is none.
    """
    receipt = detail.get("receipt")
    return CancelReceipt(_pids(receipt, "ended"), _pids(receipt, "killed"), _pids(receipt, "left"))


def _pids(receipt: JsonValue, kind: str) -> tuple[int, ...]:
    found = receipt.get(kind) if isinstance(receipt, Mapping) else None
    return tuple(pid for pid in found if isinstance(pid, int)) if isinstance(found, list) else ()

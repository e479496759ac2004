"""An op's split, what else was possible, and why that lost: values, and the sentences that say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from math import inf
from types import MappingProxyType
from typing import Final

from jupyter_autotrain.agent.sizes import format_memory
from jupyter_autotrain.parallel.plan.formatting import PrintedTable, html_table, ms, wrapped

SHOWN: Final = 6
HEADS: Final = ("", "split", "per step", "compute", "inputs", "outputs", "weights", "memory")
PARTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "compute_s": "compute",
        "input_move_s": "moving inputs",
        "output_move_s": "moving outputs",
        "weight_s": "weights",
    }
)
LEAST_SHOWN_S: Final = 1e-7
EQUAL_S: Final = 1e-9


@dataclass(frozen=True, slots=True)
class OpAlternative:
    """One way to split an op; seconds of a whole step, bytes held by a rank, both of one such op.

    Attributes:
        split: Mesh axis → role and name of the loop it splits, in words.
        loops: Per mesh axis the name of the loop it splits, or None: what a pin takes.
        zero: ZeRO level of its weights.
        state_sharding: How they are kept, in words; "" where it has none.
        compute_s: Forward, backward and recomputation.
        input_move_s: Layout changes of its inputs and their gradients.
        output_move_s: Layout changes of its outputs and their gradients.
        weight_s: Gradients, gathered weights and optimizer.
        held_bytes: States and activations.
        fits: Whether a plan that does it so, everything else as it is, keeps within the limit.
    """

    split: str
    loops: tuple[str | None, ...]
    zero: int
    state_sharding: str
    compute_s: float
    input_move_s: float
    output_move_s: float
    weight_s: float
    held_bytes: float
    fits: bool

    @property
    def seconds(self) -> float:
        """Sum of all parts."""
        return self.compute_s + self.input_move_s + self.output_move_s + self.weight_s

    @property
    def what(self) -> str:
        """The split, and how weights are kept where that is not the usual way."""
        return self.split + (f"; {self.state_sharding}" if self.state_sharding not in {"", "ZeRO-0"} else "")


@dataclass(frozen=True, slots=True)
class Explanation:
    """An op's split, the runner-up, and why that lost; `str` of it reads as text.

    Attributes:
        op: The op.
        count: Ops of equal form and decision that the plan has.
        chosen: What the plan does.
        runner_up: The fastest other split; None when there is no other.
        ways: All splits, fastest first.
        why: Why the runner-up lost, in milliseconds and bytes.
    """

    op: str
    count: int
    chosen: OpAlternative
    runner_up: OpAlternative | None
    ways: tuple[OpAlternative, ...]
    why: str

    def __str__(self) -> str:
        return f"{self._head()}\n{self.table}\n{wrapped([self.why], 0)}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        table = html_table(HEADS, self.table.rows, found=0)
        return f"<p><b>{escape(self._head())}</b></p>{table}<p>{escape(self.why)}</p>"

    def _head(self) -> str:
        return self.op + (f", one of {self.count} alike" if self.count > 1 else "")

    @property
    def table(self) -> PrintedTable:
        """The chosen split and the fastest other ones, with their prices."""
        return PrintedTable(HEADS, list(map(self._row, dict.fromkeys((self.chosen, *self.ways[:SHOWN])))))

    def _row(self, option: OpAlternative) -> tuple[str, ...]:
        seconds = (
            option.seconds,
            option.compute_s,
            option.input_move_s,
            option.output_move_s,
            option.weight_s,
        )
        mark = "chosen" if option == self.chosen else ""
        held = format_memory(option.held_bytes) + ("" if option.fits else ", too much")
        return mark, option.what, *map(ms, seconds), held


def reason(chosen: OpAlternative, runner_up: OpAlternative, limit_bytes: float, gap: float) -> str:
    """Why the runner-up lost: one sentence on its time, memory, and on what is proved of the whole plan."""
    slower_s = runner_up.seconds - chosen.seconds
    detail = _detail(chosen, runner_up)
    memory = _memory(runner_up.held_bytes - chosen.held_bytes)
    what = f"The runner-up ({runner_up.what})"
    if not runner_up.fits:
        limit = format_memory(limit_bytes)
        return f"{what} needs {memory} in each such op: over the limit of {limit}; it is {_than(slower_s)} ({detail})."
    if slower_s >= 0:
        return f"{what} is {_than(slower_s)} per step ({detail or 'nothing else differs'}), with {memory}."
    proof = f"the whole plan is at most {gap:.1%} from the best" if gap < inf else "the rest decides"
    return f"{what} is {_than(slower_s)} here by itself ({detail}), with {memory}; {proof}."


def _detail(chosen: OpAlternative, runner_up: OpAlternative) -> str:
    """Return the parts that differ, with their signs."""
    found = []
    for key, word in PARTS.items():
        more_s = getattr(runner_up, key) - getattr(chosen, key)
        if abs(more_s) > LEAST_SHOWN_S:
            found.append(f"{word} {'+' if more_s > 0 else '-'}{ms(abs(more_s))}")
    return ", ".join(found)


def _memory(more_bytes: float) -> str:
    if not more_bytes:
        return "the same memory"
    return f"{format_memory(abs(more_bytes))} {'more' if more_bytes > 0 else 'less'} memory per rank"


def _than(slower_s: float) -> str:
    if abs(slower_s) < EQUAL_S:
        return "just as fast"
    return f"{ms(abs(slower_s))} {'slower' if slower_s > 0 else 'faster'}"

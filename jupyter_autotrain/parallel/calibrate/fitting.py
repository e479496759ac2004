"""Constants of the cost model from samples of a place: least squares of relative errors.

Each kind of kernel has a line, seconds = sum of terms, as `cost.roofline` and `cost.collectives` have it. Relative
errors count, so that small calls weigh as much as large ones. Samples far off the line count less the further they are
(iteratively reweighted), so that one that another program disturbed does not move it. No constant is negative.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from jupyter_autotrain.parallel.arrays import Floats
from jupyter_autotrain.parallel.cost.collectives import AlphaBeta
from jupyter_autotrain.parallel.cost.memory import Optimizer
from jupyter_autotrain.parallel.cost.roofline import Roofline
from jupyter_autotrain.parallel.cost.states import FREE
from jupyter_autotrain.parallel.graph.builder import BACKWARD_FLOPS
from jupyter_autotrain.parallel.graph.graph import Family

Sample: TypeAlias = Mapping[str, Any]
Lines: TypeAlias = Sequence[tuple[float, ...]]
ROUNDS: Final = 20
TOLERANCE: Final = 0.2  # relative error, beyond which a sample counts less
MOST_SLOWDOWN: Final = 1.0  # of compute by what is sent meanwhile, as a share of the time to send it
ADAM_BYTES: Final = 2 * Optimizer().state_bytes(4) + 3 * 4 + 2 * 4  # per 32-bit weight, as `cost.states` counts


@dataclass(frozen=True, slots=True)
class Constants:
    """Constants of one number of ranks that work at a time.

    Attributes:
        ranks: The number.
        matrix_flops_per_s: Rate of large products of 16 bits, on one rank.
        matrix32_flops_per_s: The same of 32 bits.
        ramp_flops: As of `cost.roofline.Efficiency`, and so the next four.
        attention: Share of the rate that attention reaches.
        launch_s: Time between dependent kernels.
        update: Share of the rate of other kernels that the update reaches.
        update_launch_s: Time of the kernels that update one weight.
        memory_bytes_per_s: Rate of kernels that move bytes.
        link_bytes_per_s: Between ranks; 0 for one rank.
        latency_s: Of a message.
        scatter: As of `cost.states.Assumptions`, and so the next five.
        sharing: The same.
        replicating: The same.
        moving: The same.
        shared_update_s: The same.
        overlap_slowdown: The same.
        kernels: Op of a traced model, and its seconds per element forward and backward, launch excluded.
        scores: Seconds per score that attention takes beyond its products, forward and backward: without dropout, and
            with it.
        error: Median relative error of the samples against these constants.
    """

    ranks: int
    matrix_flops_per_s: float
    matrix32_flops_per_s: float
    ramp_flops: float
    attention: float
    launch_s: float
    update: float
    update_launch_s: float
    memory_bytes_per_s: float
    link_bytes_per_s: float
    latency_s: float
    scatter: float
    sharing: AlphaBeta
    replicating: AlphaBeta
    moving: AlphaBeta
    shared_update_s: float
    overlap_slowdown: float
    kernels: Mapping[str, tuple[float, float]]
    scores: tuple[tuple[float, float], tuple[float, float]]
    error: float


class Fit:
    """Samples of one number of ranks, and the lines through them.

    Args:
        samples: Of `probe`.
        roofline: The device, for what its products idle.
    """

    def __init__(self, samples: Sequence[Sample], roofline: Roofline) -> None:
        self._samples = samples
        self._roofline = roofline
        self._errors: list[float] = []
        (launch,) = self._of("launch")
        self.ranks = int(launch["ranks"])
        self.launch_s = float(launch["seconds"] / launch["kernels"])

    def constants(self) -> Constants:
        """Return the constants."""
        memory_bytes_per_s = 1 / self._line(self._of("stream"), [(s["bytes"],) for s in self._of("stream")])[0]
        rate16, _ = self._product("bfloat16")
        rate32, ramp_flops = self._product("float32")
        fused = self._of("attention", side="forward", dropout=0.0)
        s_per_flop = max(self._line(fused, [(s["flops"],) for s in fused])[0], 1 / rate32)
        alone = self._of("update", shared=False)
        updates = [(ADAM_BYTES * s["elements"] / memory_bytes_per_s, s["weights"]) for s in alone]
        update, update_launch_s = self._line(alone, updates, launches=0)
        latency_s, s_per_byte, scatter = self._link()
        collective = AlphaBeta(latency_s * math.log2(self.ranks), s_per_byte * (self.ranks - 1) / self.ranks)
        return Constants(
            ranks=self.ranks,
            matrix_flops_per_s=rate16,
            matrix32_flops_per_s=rate32,
            ramp_flops=ramp_flops,
            attention=1 / s_per_flop / rate32,
            launch_s=self.launch_s,
            update=1 / update,
            update_launch_s=update_launch_s,
            memory_bytes_per_s=memory_bytes_per_s,
            link_bytes_per_s=1 / s_per_byte if s_per_byte else 0.0,
            latency_s=latency_s,
            scatter=scatter,
            sharing=self._around({"shared": (2, 1 + scatter), "reshared": (3, 2 + scatter)}, collective),
            replicating=self._around({"replicated": (1, 2)}, collective),
            moving=self._moving(collective),
            shared_update_s=self._shared_update_s(update / memory_bytes_per_s, update_launch_s),
            overlap_slowdown=self._slowdown(),
            kernels=self._kernels(),
            scores=(self._scores(0.0, s_per_flop), self._scores(0.1, s_per_flop)),
            error=float(np.median(self._errors)),
        )

    def _of(self, kind: str, **facts: object) -> list[Sample]:
        """Return the samples of a kind for which some facts hold."""
        return [s for s in self._samples if s["kind"] == kind and facts.items() <= s.items()]

    def _product(self, dtype: str) -> tuple[float, float]:
        """Return the rate of products of a format, and the work that starting one costs."""
        samples = [sample for sample in self._of("matmul") if sample["dtype"] == dtype]
        lines = []
        for sample in samples:
            idle = self._roofline.wave_quantization_loss(np.array(float(sample["elements"])))
            lines.append((sample["flops"] * (1 + float(idle)), 1.0))
        s_per_flop, ramp_s = self._line(samples, lines)
        return 1 / s_per_flop, ramp_s / s_per_flop

    def _link(self) -> tuple[float, float, float]:
        """Return latency and seconds per byte as `cost.collectives` has them, and a scatter in units of a gather."""
        if self.ranks == 1:
            return 0.0, 0.0, 1.0
        steps = math.log2(self.ranks)
        share = (self.ranks - 1) / self.ranks
        samples = [*self._of("all_reduce"), *self._of("all_gather")]
        rounds = [2 if sample["kind"] == "all_reduce" else 1 for sample in samples]
        lines = [(many * steps, many * share * s["bytes"]) for many, s in zip(rounds, samples, strict=True)]
        latency_s, s_per_byte = self._line(samples, lines, launches=0)
        scattered = self._of("reduce_scatter")
        gathered = [(latency_s * steps + s_per_byte * share * s["bytes"],) for s in scattered]
        (scatter,) = self._line(scattered, gathered, launches=0)
        return latency_s, s_per_byte, scatter

    def _around(self, exchanges: Mapping[str, tuple[int, float]], collective: AlphaBeta) -> AlphaBeta:
        """Return what an exchange of weights or gradients takes beside the collective itself.

        Args:
            exchanges: How weights are spread → exchanges of a step, and the time of their collectives in all-gathers.
            collective: An all-gather among these ranks.
        """
        seconds = []
        lines = []
        for how, (count, gathers) in exchanges.items():
            for sample in self._of("spread", how=how):
                (whole,) = self._of("spread", how="whole", bytes=sample["bytes"])
                messages = sample["layers"] if count > 1 else 1
                sent_s = gathers * (messages * collective.start_s + sample["bytes"] * collective.s_per_byte)
                seconds.append(max(sample["seconds"] - whole["seconds"] - sent_s, self.launch_s))
                lines.append((count * messages, count * sample["bytes"]))
        return _alpha_beta(lines, seconds)

    def _moving(self, collective: AlphaBeta) -> AlphaBeta:
        """Return what moving an activation between products takes beside the collective, an all-reduce here."""
        lines = []
        seconds = []
        for sample in self._of("moved", how="summed"):
            (alone,) = self._of("moved", how="alone", bytes=sample["bytes"])
            sent_s = 2 * (collective.start_s + sample["bytes"] * collective.s_per_byte)
            lines.append((1.0, sample["bytes"]))
            seconds.append(max(sample["seconds"] - alone["seconds"] - sent_s, self.launch_s))
        return _alpha_beta(lines, seconds)

    def _shared_update_s(self, s_per_byte: float, launch_s: float) -> float:
        """Return what updating a weight of which a rank has a part takes more than updating a whole one."""
        over = 0.0
        for sample in self._of("update", shared=True):
            whole_s = ADAM_BYTES * sample["elements"] * s_per_byte + sample["weights"] * launch_s
            over = max(over, (sample["seconds"] - whole_s) / sample["weights"])
        return over

    def _kernels(self) -> dict[str, tuple[float, float]]:
        found: dict[str, list[float]] = {}
        for sample in self._of("kernel"):
            own_s = max(0.0, sample["seconds"] - self.launch_s)
            found.setdefault(sample["op"], []).append(own_s / sample["elements"])
        return {op: (forward_s, backward_s) for op, (forward_s, backward_s) in found.items()}

    def _scores(self, dropout: float, s_per_flop: float) -> tuple[float, float]:
        """Return what attention takes per score beyond its products, forward and backward."""
        found = []
        for side, factor in (("forward", 1.0), ("backward", BACKWARD_FLOPS[Family.ATTENTION])):
            samples = self._of("attention", side=side, dropout=dropout)
            over = [(s["seconds"] - self.launch_s - s["flops"] * factor * s_per_flop) / s["elements"] for s in samples]
            found.append(max(0.0, float(np.median(over))))
        return found[0], found[1]

    def _slowdown(self) -> float:
        """Return what sending costs that is hidden behind products, as a share of the time that it takes alone."""
        parts = {sample["part"]: float(sample["seconds"]) for sample in self._of("overlap")}
        if not parts:
            return 0.0
        shown_s = parts["both"] - parts["compute"]
        hidden_s = min(parts["communication"], parts["compute"])
        over_s = parts["communication"] - hidden_s
        return float(np.clip((shown_s - over_s) / hidden_s, 0.0, MOST_SLOWDOWN))

    def _line(self, samples: Sequence[Sample], lines: Lines, launches: int = 1) -> tuple[float, ...]:
        """Return the factors of a line's terms, and note how far off the samples are."""
        if not samples:
            raise ValueError("there are too few samples")
        seconds = np.array([sample["seconds"] for sample in samples]) - launches * self.launch_s
        seconds = np.maximum(seconds, self.launch_s / 10)
        found = least_squares(np.array(lines, dtype=np.float64), seconds)
        self._errors += np.abs(np.array(lines) @ found / seconds - 1).tolist()
        return tuple(found.tolist())


def _alpha_beta(lines: Lines, seconds: Sequence[float]) -> AlphaBeta:
    if not seconds:
        return FREE
    start_s, s_per_byte = least_squares(np.array(lines, dtype=np.float64), np.array(seconds)).tolist()
    return AlphaBeta(start_s, s_per_byte)


def least_squares(lines: Floats, seconds: Floats) -> Floats:
    """Return the factors, none negative, with the least relative errors, of which those beyond `TOLERANCE` count less.

    Iteratively reweighted least squares with Huber's weights; at least the first factor is above zero.

    Args:
        lines: (samples, terms).
        seconds: (samples,), above zero.
    """
    weights = np.ones(len(seconds))
    relative = lines / seconds[:, None]
    factors = np.zeros(lines.shape[1])
    for _ in range(ROUNDS):
        factors = _non_negative(relative * weights[:, None], weights)
        off = np.abs(relative @ factors - 1)
        weights = np.sqrt(np.minimum(1.0, TOLERANCE / np.maximum(off, 1e-12)))
    return factors


def _non_negative(terms: Floats, target: Floats) -> Floats:
    """Least squares with factors of at least 0: terms are left out, the worst first, but the first one of all stays."""
    kept = list(range(terms.shape[1]))
    while True:
        found, *_ = np.linalg.lstsq(terms[:, kept], target, rcond=None)
        if len(kept) == 1 or found.min() >= 0:
            break
        kept.pop(1 + int(found[1:].argmin()))
    factors = np.zeros(terms.shape[1])
    factors[kept] = found
    return factors

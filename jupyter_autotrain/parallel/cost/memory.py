"""Bytes a rank holds: states by ZeRO level, activations by schedule and recompute."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class ZeroLevel(IntEnum):
    """States that the replicas of a parameter share out (ZeRO, Rajbhandari et al. 2020, section 5)."""

    NONE = 0
    OPTIMIZER = 1
    GRADIENTS = 2
    PARAMETERS = 3


class Recompute(StrEnum):
    """Part of a block's activations that is computed again in the backward pass.

    `SELECTIVE` drops the attention core (scores, softmax, its dropout), `FULL` keeps only the block's input
    (Korthikanti et al. 2022, sections 4 and 5).
    """

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"


class Schedule(StrEnum):
    """The order of microbatches in a pipeline."""

    NONE = "none"
    GPIPE = "gpipe"
    ONE_F_ONE_B = "1f1b"
    INTERLEAVED = "interleaved"


@dataclass(frozen=True, slots=True)
class Optimizer:
    """States of the optimizer per parameter, in bytes; the default is Adam.

    16-bit parameters have a 32-bit master copy and two moments (12 bytes), 32-bit ones only the moments (8 bytes):
    with parameter and gradient 16 bytes in both cases (ZeRO, section 3.1).

    Attributes:
        moments_bytes: Running averages per parameter.
        master_bytes: 32-bit copy of a 16-bit parameter.
        gradient_bytes: Bytes per gradient; 0: as the parameter. Megatron-LM sums in 32 bits: 4.
        name: For people.
    """

    moments_bytes: int = 8
    master_bytes: int = 4
    gradient_bytes: int = 0
    name: str = "adam"

    def gradient_item_bytes(self, parameter_bytes: int) -> int:
        """Bytes per gradient."""
        return self.gradient_bytes or parameter_bytes

    def state_bytes(self, parameter_bytes: int) -> int:
        """Bytes per parameter, without the parameter and its gradient."""
        return self.moments_bytes + (self.master_bytes if parameter_bytes < 4 else 0)


def in_flight(schedule: Schedule, stages: int, stage: int, microbatches: int, chunks: int = 1) -> float:
    """Microbatches whose activations a stage holds at its peak, in units of a whole stage.

    GPipe: all. 1F1B: min(m, p - i) on stage i. Interleaved with v chunks per device: warm-up of 2(p-i-1) + (v-1)p
    chunks and one more, each 1/v of a stage; on stage 0 that is p(1 + (p-1)/(pv)) (Korthikanti 2022, section 4.2.3;
    Narayanan et al. 2021).
    """
    if schedule is Schedule.GPIPE:
        return float(microbatches)
    if schedule is Schedule.INTERLEAVED:
        return min(microbatches, (2 * (stages - stage - 1) + (chunks - 1) * stages + 1) / chunks)
    return float(min(microbatches, stages - stage))

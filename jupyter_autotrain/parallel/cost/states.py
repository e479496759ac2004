"""Ways to keep an op's parameters, gradients and optimizer states: by ZeRO level, on the device or on the host."""

from __future__ import annotations

from dataclasses import dataclass, field

from jupyter_autotrain.parallel.arrays import Floats
from jupyter_autotrain.parallel.cost.memory import Optimizer, ZeroLevel


@dataclass(frozen=True, slots=True)
class StateSharding:
    """One way to keep an op's parameters.

    Attributes:
        zero: What replicas share out.
        offload: The optimizer's states live and are updated on the host.
        host_table: A table that is only looked up lives there as well, and looked-up rows come to the device; for
            other parameters the same as `offload`.
    """

    zero: ZeroLevel
    offload: bool = False
    host_table: bool = False

    def __str__(self) -> str:
        if self.host_table:
            return "table on host"
        return f"ZeRO-{int(self.zero)}" + (" on host" if self.offload else "")


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Constants of training, apart from the kernels.

    Attributes:
        optimizer: What it keeps per parameter.
        overlap_slowdown: Share of hidden communication that still costs, since it slows the compute it hides
            behind [1]: 0.126, measured by the Galvatron project (overlap factor 1.126 on NVLink and PCIe).
        host_bytes_per_s: Memory bandwidth of the host per device, for updates on the host [bytes/s]: eight
            DDR4-3200 channels (205 GB/s) for eight devices.
        bucket_bytes: Gradients and parameters travel in buckets of this size, which share one latency [bytes]: 25 MiB,
            the default of torch's DistributedDataParallel.
        gathered_blocks: Blocks whose gathered parameters live at once under ZeRO-3: one in use, one prefetched.
    """

    optimizer: Optimizer = field(default_factory=Optimizer)
    overlap_slowdown: float = 0.126
    host_bytes_per_s: float = 25e9
    bucket_bytes: float = 25 * 2**20
    gathered_blocks: int = 2


@dataclass(frozen=True, slots=True)
class StateTable:
    """Per state sharding (rows) and strategy (columns).

    Attributes:
        state_shardings: What the rows are.
        micro_s: Exposed communication per microbatch.
        step_s: Exposed communication once per step.
        update_s: Optimizer's update.
        parameter_bytes: Held per device; gathered ZeRO-3 parameters included.
        gradient_bytes: Held per device.
        optimizer_bytes: Held per device.
    """

    state_shardings: tuple[StateSharding, ...]
    micro_s: Floats
    step_s: Floats
    update_s: Floats
    parameter_bytes: Floats
    gradient_bytes: Floats
    optimizer_bytes: Floats

    @property
    def state_bytes(self) -> Floats:
        """All states per device."""
        return self.parameter_bytes + self.gradient_bytes + self.optimizer_bytes

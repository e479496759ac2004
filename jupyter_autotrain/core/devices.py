"""Data sheets of common accelerators and of the links between them.

Matrix rates are dense, without sparsity. Bandwidths are per device and per direction. Where a vendor quotes both
directions together, half is written here. `efficiency` is the share of the link that a large collective reaches:
0.7 for NVLink (all-reduce bus bandwidth of about 210 of 300 GB/s for 64 to 128 MB on an 8-GPU A100 chassis; 235 only
for a gigabyte and more, as the vendor's collective tests print it) and 0.9 for InfiniBand and Ethernet
with RDMA (protocol headers and flow control).

Device memory that training cannot have is reserved, so that a plan which fits also runs. Of a GPU's nominal memory
these are taken, in this order:

* Driver: page tables and error correction. nvidia-smi lists 81,559 of the nominal 81,920 MiB of an H100 80 GB and
  143,771 of 144,384 MiB of an H200: 0.4 %.
* Runtime: CUDA context, kernels of the libraries, workspaces of cuBLAS and cuDNN. 0.3 to 1 GB per process (NAIRR GPU
  estimation guide, 2025); the upper end is taken.
* Communication: one communicator each for data, tensor or sequence, and pipeline. NCCL has a buffer of 4 MiB
  (NCCL_BUFFSIZE's default, NCCL user guide) per channel and direction, 32 channels at most: 256 MiB. HCCL takes twice
  its 200 MB (HCCL_BUFFSIZE's default, CANN environment variables).
* Fragmentation: what the caching allocator holds and cannot give, of all that is left: 5 %, an estimate, the low end of
  the 5 to 10 % that is usual, since shapes do not change from step to step in what is planned here.

A runtime whose compiler lays out all memory ahead, as XLA's does, fragments little: 1 %, an estimate as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

GB = 1e9
GIB = 2**30
TERA = 1e12
MIB = 2**20
DRIVER = 0.0045
RUNTIME_BYTES = 1e9
COMMUNICATORS = 3
NCCL_BYTES = 2 * 32 * 4 * MIB
HCCL_BYTES = 2 * 200e6
FRAGMENTED = 0.05
FRAGMENTED_AHEAD = 0.01
HOST_RUNTIME_BYTES = 0.5e9  # an interpreter that has imported torch, with gloo's buffers


class LinkKind(StrEnum):
    """The wiring of the devices of one level."""

    SINGLE = "single"
    RING = "ring"
    MESH = "mesh"
    TORUS = "torus"
    SWITCH = "switch"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator.

    Attributes:
        name: As in a cluster's string form.
        matrix_flops_per_s: Peak of dense 16-bit matrix products.
        matrix32_flops_per_s: The same for 32-bit inputs (TF32 where there is one).
        memory_bytes: Device memory, as the data sheet names it.
        memory_bytes_per_s: Bandwidth of that memory.
        host_bytes_per_s: To the host's memory, per direction.
        source: Where the figures come from.
        fuses: Whether it has fused kernels for attention with dropout, and for dropout, which keep bits or a seed.
        multiprocessors: Cores with matrix units, each on one tile of a product at a time; 108 of an A100.
        reserved_bytes: Of that memory, what training cannot have (see above).
    """

    name: str
    matrix_flops_per_s: float
    matrix32_flops_per_s: float
    memory_bytes: int
    memory_bytes_per_s: float
    host_bytes_per_s: float
    source: str = ""
    fuses: bool = True
    multiprocessors: int = 108
    reserved_bytes: int = 0

    @property
    def usable_bytes(self) -> int:
        """Memory that training can have."""
        return self.memory_bytes - self.reserved_bytes

    @property
    def fastest_flops_per_s(self) -> float:
        """Rate of matrix products in the faster format: CPUs may be slower in 16 bits."""
        return max(self.matrix_flops_per_s, self.matrix32_flops_per_s)

    def limit_bytes(self, asked_bytes: float | None = None) -> float:
        """Return the bytes that a rank may hold.

        These are the bytes asked for where the device has them, else those that training can have.
        """
        is_there = asked_bytes is not None and asked_bytes <= self.memory_bytes
        return asked_bytes if asked_bytes is not None and is_there else self.usable_bytes


@dataclass(frozen=True, slots=True)
class Link:
    """The links of one level, as seen by one device.

    Attributes:
        kind: The wiring.
        bytes_per_s: All links of a device together, per direction.
        latency_s: Time of one message of no length, software included.
        efficiency: Share of `bytes_per_s` that large collectives reach.
        shared_by: Devices that share this bandwidth (one network card for several).
        dims: Dimensions of a mesh or torus.
    """

    kind: LinkKind
    bytes_per_s: float
    latency_s: float
    efficiency: float = 1.0
    shared_by: int = 1
    dims: int = 1


@dataclass(frozen=True, slots=True)
class Preset:
    """A device with the chassis it usually sits in: `chassis` devices on `inside`, chassis joined by `outside`."""

    device: Device
    chassis: int
    inside: Link
    outside: Link


def _nvlink(bytes_per_s: float, latency_s: float = 5e-6) -> Link:
    return Link(LinkKind.SWITCH, bytes_per_s, latency_s, efficiency=0.7)


def _network(bytes_per_s: float, shared_by: int = 1) -> Link:
    return Link(LinkKind.SWITCH, bytes_per_s, 10e-6, efficiency=0.9, shared_by=shared_by)


def _a100(name: str, memory_gib: int, memory_gb_per_s: float) -> Preset:
    held = memory_gib * GIB
    source = "NVIDIA A100 data sheet, 2021"
    device = Device(
        name,
        312 * TERA,
        156 * TERA,
        held,
        memory_gb_per_s * GB,
        32 * GB,
        source,
        reserved_bytes=reserved_of_gpu(held),
    )
    return Preset(device, 8, _nvlink(300 * GB), _network(25 * GB))


def _v100(name: str, memory_gib: int) -> Preset:
    source = "NVIDIA V100 SXM2 data sheet; DGX-1 white paper: 6 NVLinks of 25 GB/s, four 100 Gb/s ports for 8 GPUs"
    held = memory_gib * GIB
    device = Device(
        name,
        125 * TERA,
        15.7 * TERA,
        held,
        900 * GB,
        16 * GB,
        source,
        multiprocessors=80,
        reserved_bytes=reserved_of_gpu(held),
    )
    return Preset(device, 8, _nvlink(150 * GB), _network(12.5 * GB, shared_by=2))


def _hopper(name: str, memory_gib: int, memory_gb_per_s: float) -> Preset:
    source = f"NVIDIA {name} SXM data sheet: NVLink4 900 GB/s both ways, NDR 400 Gb/s per GPU"
    held = memory_gib * GIB
    device = Device(
        name,
        989 * TERA,
        494 * TERA,
        held,
        memory_gb_per_s * GB,
        64 * GB,
        source,
        multiprocessors=132,
        reserved_bytes=reserved_of_gpu(held),
    )
    return Preset(device, 8, _nvlink(450 * GB), _network(50 * GB))


def _nnp(name: str, tera: float) -> Preset:
    """Return the preset of a Spring Crest card.

    16 inter-chip links of 4 lanes x 28 Gb/s (14 GB/s each) join cards and chassis alike.
    """
    source = "Intel Nervana NNP-T (Spring Crest), Hot Chips 31, 2019; rates of T1300/T1400 from clusters x clock"
    device = Device(
        name,
        tera * TERA,
        tera / 2 * TERA,
        32 * GIB,
        1228.8 * GB,
        16 * GB,
        source,
        multiprocessors=24,
        reserved_bytes=reserved_of_gpu(32 * GIB),  # no figure is published; as of a GPU
    )
    inside = Link(LinkKind.RING, 16 * 14 * GB, 2e-6, efficiency=0.9)
    return Preset(device, 8, inside, Link(LinkKind.RING, 16 * 14 * GB, 3e-6, efficiency=0.9, shared_by=2))


def _tpu4() -> Preset:
    source = "Jouppi et al. 2023, TPU v4: 275 TFLOP/s, 1,228 GB/s, 6 links of 45 GB/s in a 3-D torus"
    kept = reserved_of_gpu(32 * GIB, fragmented=FRAGMENTED_AHEAD)
    device = Device(
        "TPUv4", 275 * TERA, 69 * TERA, 32 * GIB, 1228 * GB, 16 * GB, source, multiprocessors=8, reserved_bytes=kept
    )
    torus = Link(LinkKind.TORUS, 6 * 45 * GB, 1e-6, efficiency=0.9, dims=3)
    return Preset(device, 4096, torus, _network(6.25 * GB))


def _ascend() -> Preset:
    source = "Huawei Ascend 910: 256 TFLOP/s; HCCS 3 x 240 Gb/s; RoCE 2 x 100 Gb/s; memory figures recalled"
    kept = reserved_of_gpu(32 * GIB, HCCL_BYTES)
    device = Device(
        "Ascend910",
        256 * TERA,
        64 * TERA,
        32 * GIB,
        1200 * GB,
        16 * GB,
        source,
        multiprocessors=32,
        reserved_bytes=kept,
    )
    return Preset(device, 8, Link(LinkKind.FULL, 90 * GB, 5e-6, efficiency=0.8), _network(25 * GB))


def _cpu() -> Preset:
    source = "Measured with torch and gloo on one shared host: 93 GFLOP/s, 59 GB/s, 1.4 GB/s all-reduce, 105 us"
    kept = reserved_of_host(8 * GIB)
    device = Device(
        "CPU", 93e9, 93e9, 8 * GIB, 59 * GB, 59 * GB, source, fuses=False, multiprocessors=1, reserved_bytes=kept
    )
    link = Link(LinkKind.SWITCH, 1.4 * GB, 105e-6)
    return Preset(device, 64, link, Link(LinkKind.SWITCH, 1.25 * GB, 200e-6))


def presets() -> Mapping[str, Preset]:
    """Return every known device by name.

    The first of a family is also found by the family's short name.
    """
    known = [
        _v100("V100-16GB", 16),
        _v100("V100-32GB", 32),
        _a100("A100-40GB", 40, 1555),
        _a100("A100-80GB", 80, 2039),
        _hopper("H100", 80, 3350),
        _hopper("H200", 141, 4800),
        _tpu4(),
        _ascend(),
        _nnp("NNP-T1000", 119),
        _nnp("NNP-T1300", 93.4),
        _nnp("NNP-T1400", 108),
        _cpu(),
    ]
    named = {preset.device.name: preset for preset in known}
    aliases = {"A100": "A100-80GB", "V100": "V100-16GB", "H100-80GB": "H100", "H200-141GB": "H200"}
    return named | {alias: named[name] for alias, name in aliases.items()}


def reserved_of_gpu(memory_bytes: int, communicator_bytes: float = NCCL_BYTES, fragmented: float = FRAGMENTED) -> int:
    """Return the bytes of an accelerator that training cannot have.

    Args:
        memory_bytes: Nominal memory.
        communicator_bytes: Buffers of one communicator.
        fragmented: Share of what is left that the allocator cannot give.
    """
    left = memory_bytes * (1 - DRIVER) - RUNTIME_BYTES - COMMUNICATORS * communicator_bytes
    return round(memory_bytes - left * (1 - fragmented))


def reserved_of_host(memory_bytes: int) -> int:
    """Return the bytes of a process's share of host memory that training cannot have."""
    return round(memory_bytes - (memory_bytes - HOST_RUNTIME_BYTES) * (1 - FRAGMENTED_AHEAD))

"""How the nodes of a cluster name their accelerators: as extended resources, with kind and memory in labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

GPU_RESOURCES: Final = (
    "nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe",
    "habana.ai/gaudi", "google.com/tpu", "aws.amazon.com/neuron", "huawei.com/Ascend910",
)  # fmt: skip
MIG_PREFIX: Final = "nvidia.com/mig-"
_PRODUCT_LABELS = (
    "nvidia.com/gpu.product", "amd.com/gpu.product-name", "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator", "k8s.amazonaws.com/accelerator", "accelerator",
)  # fmt: skip
_MEMORY_LABEL = "nvidia.com/gpu.memory"  # in MiB
_MIG_MEMORY = re.compile(r"\.(\d+)gb")
_SHARED = "-SHARED"  # the end of a product of which each device is counted several times
_KINDS: Final = {"huawei.com/Ascend910": "Ascend910"}


@dataclass(frozen=True, slots=True)
class GpuKind:
    """What the devices of a resource are.

    Attributes:
        name: Their model as the cluster calls it; None where nothing says so, or where a device is a part of one.
        memory_bytes: Of each; None: not known.
    """

    name: str | None
    memory_bytes: int | None = None


def is_gpu(resource: str) -> bool:
    """Whether an extended resource counts accelerators."""
    return resource in GPU_RESOURCES or resource.startswith(MIG_PREFIX)


def kind_of(resource: str, labels: Mapping[str, str]) -> GpuKind:
    """What the devices of a resource of a node are, by the node's labels.

    A part of a device is called by the part alone: a plan must not take it for the whole.

    Args:
        resource: As in the node's allocatable resources.
        labels: Of the node.
    """
    if resource.startswith(MIG_PREFIX):
        return GpuKind(resource.removeprefix("nvidia.com/"), _mig_memory(resource))
    product = next((labels[label] for label in _PRODUCT_LABELS if labels.get(label)), None)
    if resource.endswith(".shared") or (product or "").endswith(_SHARED):
        return GpuKind("a shared GPU")
    memory = labels.get(_MEMORY_LABEL, "")
    memory_bytes = int(memory) * 2**20 if memory.isdigit() and resource.startswith("nvidia.com/") else None
    return GpuKind(product or _KINDS.get(resource), memory_bytes)


def _mig_memory(resource: str) -> int | None:
    """Of mig-1g.5gb 5 GiB; parts are named by their memory, rounded."""
    found = _MIG_MEMORY.search(resource)
    return int(found[1]) * 2**30 if found else None

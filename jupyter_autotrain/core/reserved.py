"""Device memory that training cannot have, so that a plan which fits also runs.

Of a GPU's nominal memory these are taken, in this order:

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

MIB = 2**20
DRIVER = 0.0045
RUNTIME_BYTES = 1e9
COMMUNICATORS = 3
NCCL_BYTES = 2 * 32 * 4 * MIB
HCCL_BYTES = 2 * 200e6
FRAGMENTED = 0.05
FRAGMENTED_AHEAD = 0.01
HOST_RUNTIME_BYTES = 0.5e9  # an interpreter that has imported torch, with gloo's buffers


def of_gpu(memory_bytes: int, communicator_bytes: float = NCCL_BYTES, fragmented: float = FRAGMENTED) -> int:
    """Bytes of an accelerator that training cannot have.

    Args:
        memory_bytes: Nominal memory.
        communicator_bytes: Buffers of one communicator.
        fragmented: Share of what is left that the allocator cannot give.
    """
    left = memory_bytes * (1 - DRIVER) - RUNTIME_BYTES - COMMUNICATORS * communicator_bytes
    return round(memory_bytes - left * (1 - fragmented))


def of_host(memory_bytes: int) -> int:
    """Bytes of a process's share of host memory that training cannot have."""
    return round(memory_bytes - (memory_bytes - HOST_RUNTIME_BYTES) * (1 - FRAGMENTED_AHEAD))

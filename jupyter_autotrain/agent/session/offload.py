"""Moving what PyTorch has on a GPU to the host's memory and back, in place: models and optimizers keep their tensors.

Called in the kernel of a session between its cells. Tensors that share memory share it again afterwards.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Any

Moved = list[tuple[list[Any], Any]]  # tensors of one storage, and the device that they were on


def away(kind: str = "cuda", to: str = "cpu") -> Moved:
    """Move all tensors of a kind of device; gives what `back` needs."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return []
    groups: dict[tuple[Any, int], list[Any]] = {}
    for tensor in _tensors(torch):
        if tensor.device.type == kind:
            groups.setdefault((tensor.device, tensor.untyped_storage()._cdata), []).append(tensor)  # noqa: SLF001 - its identity
    moved = []
    for (device, _), tensors in groups.items():
        _move(torch, tensors, to)
        moved.append((tensors, device))
    if kind == "cuda" and torch.cuda.is_initialized():
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    return moved


def back(moved: Moved) -> None:
    """Move them back to where they were."""
    torch: Any = sys.modules.get("torch")
    for tensors, device in moved:
        _move(torch, tensors, device)


def _tensors(torch: Any) -> Iterator[Any]:  # noqa: ANN401 - torch's module
    """Yield every plain tensor that is alive, each once, with the gradients, which Python may not have seen."""
    seen = set()
    for one in gc.get_objects():
        if type(one) not in {torch.Tensor, torch.nn.Parameter} or one.layout is not torch.strided:
            continue
        for tensor in (one, one.grad if one.is_leaf else None):
            if tensor is not None and id(tensor) not in seen:
                seen.add(id(tensor))
                yield tensor


def _move(torch: Any, tensors: list[Any], device: Any) -> None:  # noqa: ANN401 - as above
    storage = tensors[0].untyped_storage()
    copied = torch.empty(0, dtype=torch.uint8, device=tensors[0].device).set_(storage).to(device, copy=True)
    for tensor in tensors:
        shape = (tensor.storage_offset(), tensor.size(), tensor.stride())
        moved = torch.empty(0, dtype=tensor.dtype, device=device).set_(copied.untyped_storage(), *shape)
        tensor.data = moved

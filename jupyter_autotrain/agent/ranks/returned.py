"""Pickles of what a cell returns, with the gradients of its tensors, which torch's own pickles leave out."""

from __future__ import annotations

import io
import pickle
import sys

try:
    from cloudpickle import Pickler
except ImportError:
    Pickler = pickle.Pickler


class _Returned(Pickler):  # type: ignore[misc]  # cloudpickle has no types
    def reducer_override(self, value: object) -> object:
        """Return a tensor's own reduction, with its gradient in its state: torch's functions put both together."""
        torch = sys.modules.get("torch")  # a trial that has no tensors does not pay for it
        if torch is not None and isinstance(value, torch.Tensor) and value.is_leaf and value.grad is not None:
            made_by, arguments = value.__reduce_ex__(pickle.DEFAULT_PROTOCOL)[:2]
            state = (None, {"grad": value.grad})
            return torch._tensor._rebuild_from_type_v2, (made_by, type(value), arguments, state)  # noqa: SLF001 - as torch does
        other = getattr(super(), "reducer_override", None)
        return NotImplemented if other is None else other(value)


def dumps(value: object) -> bytes:
    """Return the pickle of a value that a cell returns; nothing of this package is needed to read it.

    Raises:
        Exception: Whatever the value's own reduction raises.
    """
    with io.BytesIO() as file:
        _Returned(file, pickle.DEFAULT_PROTOCOL).dump(value)
        return file.getvalue()

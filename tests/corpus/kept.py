"""Pickles of the second ordinary run's values, gradients of parameters included, which torch leaves out."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import cloudpickle


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    def reducer_override(self, value: object) -> object:
        torch = sys.modules.get("torch")
        if torch and isinstance(value, torch.nn.Parameter) and value.grad is not None:
            made_by, arguments = value.__reduce_ex__(4)[:2]
            return _with_grad, (made_by, arguments, value.grad)
        return super().reducer_override(value)


def dumps(value: object) -> bytes:
    """Return the pickle of a value; whatever fails is raised."""
    with io.BytesIO() as file:
        _Pickler(file).dump(value)
        return file.getvalue()


def _with_grad(made_by: Callable[..., object], arguments: tuple[object, ...], grad: object) -> object:
    value = made_by(*arguments)
    value.grad = grad  # type: ignore[attr-defined]  # a parameter
    return value

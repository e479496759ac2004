"""The weights of a model: arrays by name, in a model and in a file.

A file is NumPy's `.npz`, uncompressed and without pickles: what a client sends is not trusted.
"""

from __future__ import annotations

import hashlib
import math
import os

from jupyter_autotrain.agent import durable, wire

TYPE_CHECKING = False  # a client imports this module, and `typing` is slow to import
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeAlias

    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]
    Weights: TypeAlias = dict[str, Array]
else:
    Array = Weights = object

_PREFIX = "w:"  # a weight may be called as an argument of NumPy's
_BLOCK_BYTES = 1 << 20


class WeightsError(ValueError):
    """Weights that cannot be used; the text is the rest of a sentence that begins with their sender."""


def of_model(model: object) -> Weights:
    """Return the weights of a model; of a model on a CPU they share its memory.

    Args:
        model: A PyTorch module, or a mapping of names to tensors or NumPy arrays, such as a `state_dict()`.

    Raises:
        TypeError: It is neither.
    """
    return {name: _array(value) for name, value in _state(model).items()}


def into_model(model: object, weights: Mapping[str, Array]) -> None:
    """Set the weights of a model, in place.

    Raises:
        WeightsError: The model has other names or shapes.
    """
    state = _state(model)
    if fault := difference({name: _array(value) for name, value in state.items()}, weights):
        raise WeightsError(fault)
    for name, value in state.items():
        if hasattr(value, "copy_"):
            value.copy_(value.new_tensor(weights[name]))
        else:
            value[...] = weights[name]


def _state(model: object) -> Mapping[str, Any]:
    found = model.state_dict() if hasattr(model, "state_dict") else model
    if not hasattr(found, "items"):
        raise TypeError(f"rounds() takes a PyTorch module or a dict of arrays, not {type(model).__name__}")
    return {name: value for name, value in found.items() if hasattr(value, "shape")}


def _array(value: Any) -> Array:  # noqa: ANN401 - a tensor or an array
    import numpy as np  # noqa: PLC0415 - the supervisor has no use for it

    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
    return np.asarray(value)


def difference(expected: Mapping[str, Array], found: Mapping[str, Array]) -> str:
    """Return why weights are not those of the same model; "" where they are."""
    for name in expected:
        if name not in found:
            return f"sent no weight {name!r}"
        if expected[name].shape != found[name].shape:
            shapes = f"{found[name].shape}, expected {expected[name].shape}"
            return f"sent weight {name!r} of shape {shapes}"
    more = [name for name in found if name not in expected]
    return f"sent a weight {more[0][:80]!r}, which the model does not have" if more else ""


def is_float(array: Array) -> bool:
    """Tell whether an array is trained; others, such as counters, are carried along."""
    return array.dtype.kind == "f"


def norm_of(weights: Mapping[str, Array], start: Mapping[str, Array]) -> float:
    """Return the Euclidean norm of the change of all weights from a start."""
    import numpy as np  # noqa: PLC0415 - the supervisor has no use for it

    total = 0.0
    for name, array in weights.items():
        if is_float(array):
            total += float(np.sum(np.square(array.astype(np.float64) - start[name])))
    return math.sqrt(total)


def clipped(weights: Weights, start: Mapping[str, Array], most: float) -> Weights:
    """Return weights whose change from a start has at most this norm; what is not trained stays as at the start."""
    norm = norm_of(weights, start)
    share = min(1.0, most / norm) if norm else 1.0
    found = {}
    for name, array in weights.items():
        changed = start[name] + (array - start[name]) * share if is_float(array) else start[name]
        found[name] = changed.astype(array.dtype)
    return found


def save(path: str, weights: Mapping[str, Array], *, sync: bool = False) -> tuple[str, int]:
    """Write a file of weights, whole or not at all, with `sync` durably; return its SHA-256 and its size in bytes."""
    import numpy as np  # noqa: PLC0415 - the supervisor has no use for it

    draft = f"{path}{wire.DRAFT}"
    with open(draft, "wb") as file:
        named: dict[str, Any] = {f"{_PREFIX}{name}": array for name, array in weights.items()}
        np.savez(file, **named)
        if sync:
            file.flush()
            durable.sync(file.fileno())
    found = digest(draft), os.path.getsize(draft)
    os.replace(draft, path)
    return found


def digest(path: str) -> str:
    """Return the SHA-256 of a file."""
    total = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK_BYTES):
            total.update(block)
    return total.hexdigest()


def load(path: str, sha256: str) -> Weights:
    """Return the weights in a file.

    Raises:
        WeightsError: It is not the file with this digest, or no file that `save` writes.
    """
    import zipfile  # noqa: PLC0415 - headers are read without it

    import numpy as np  # noqa: PLC0415 - the supervisor has no use for it

    if digest(path) != sha256:
        raise WeightsError("sent weights that are not those of their digest")
    try:
        with zipfile.ZipFile(path) as archive:
            is_packed = any(one.compress_type != zipfile.ZIP_STORED for one in archive.infolist())
        if not is_packed:  # else it could unpack to any size
            with np.load(path, allow_pickle=False) as found:
                return {name[len(_PREFIX) :]: found[name] for name in found.files}
    except Exception as error:  # a damaged file makes NumPy raise anything
        raise WeightsError(f"sent weights that cannot be read: {type(error).__name__}: {error}") from error
    raise WeightsError("sent weights that are packed")

"""Weights in safetensors files, of which a rank reads its part: one file, or several with an index."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from jupyter_autotrain.errors import MissingExtraError, PlanError
from jupyter_autotrain.parallel.apply.shards import Where, part_of

_SINGLE: Final = "model.safetensors"
_INDEX: Final = "model.safetensors.index.json"
_MOST_NAMED: Final = 3


class WeightFiles:
    """Tensors in files by their names in a model.

    Args:
        path: Folder with `model.safetensors` or its index, or one file.
        model: The whole model, on the meta device.
        tied: Name of a tensor → all of its names.

    Raises:
        PlanError: There are no such files, or they are not of this model.
    """

    def __init__(self, path: Path, model: nn.Module, tied: Mapping[str, Sequence[str]]) -> None:
        self._file_of = _files(path)
        self._open: dict[Path, Any] = {}
        whole = model.state_dict()
        keys = keys_of(model, self._file_of)
        self._keys: dict[str, Any] = {}
        for name in whole:
            found = next((other for other in tied.get(name, (name,)) if other in keys), None)
            if found is not None:
                self._keys[tied[name][0]] = keys[found]
        self._check(path, model, {tied[name][0] for name in whole})

    @property
    def names(self) -> set[str]:
        """Names of the tensors that the files have, of tied ones the first."""
        return set(self._keys)

    def read(self, name: str, where: Where) -> torch.Tensor:
        """Return a part of a tensor; only that is read."""
        if not where:
            key = self._keys[name]
            scalar: torch.Tensor = self._opened(key).get_tensor(key)
            return scalar
        return part_of(self._slices(name), where)

    def _slices(self, name: str) -> Any:  # noqa: ANN401 - what reads slices: safetensors has no type for it
        key = self._keys[name]
        if isinstance(key, str):
            return self._opened(key).get_slice(key)
        return Stacked([self._matrices(row) for row in key])

    def _matrices(self, keys: Sequence[str]) -> list[Any]:
        return [self._opened(key).get_slice(key) for key in keys]

    def _opened(self, key: str) -> Any:  # noqa: ANN401 - as above
        file = self._file_of[key]
        if file not in self._open:
            self._open[file] = _safetensors().safe_open(str(file), framework="pt")
        return self._open[file]

    def _check(self, path: Path, model: nn.Module, names: Iterable[str]) -> None:
        """Check that each tensor of the model is there, in its shape; a head that is missing is drawn.

        Raises:
            PlanError: One is not.
        """
        missing = sorted(set(names) - self.names)
        base = f"{getattr(model, 'base_model_prefix', '')}."
        is_head = base != "." and self._keys and not any(name.startswith(base) for name in missing)
        if missing and not is_head:
            raise PlanError(
                f"{path} has no {listed(missing)}; it has {listed(sorted(self._file_of))}.",
                f"The weights of {type(model).__name__}, as its state_dict or transformers names them.",
                "Give the folder of this model's weights, or save them so: model.save_pretrained(folder).",
            )
        whole = model.state_dict()
        for name in self.names:
            expected = list(whole[name].shape)
            found = list(self._slices(name).get_shape()) if expected else []
            if found != expected:
                raise PlanError(
                    f"{name} is {found} in {path}.",
                    f"{expected}, as in {type(model).__name__}.",
                    "Make the model of the configuration that is saved with the weights.",
                )


class Stacked:
    """Matrices in several entries as one tensor: a row of them joined for each expert.

    Args:
        rows: For each expert, what reads slices of its matrices.
    """

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        self._rows = rows

    def get_shape(self) -> list[int]:
        """Return the shape of the whole."""
        shapes = [matrix.get_shape() for matrix in self._rows[0]]
        return [len(self._rows), sum(shape[0] for shape in shapes), *shapes[0][1:]]

    def __getitem__(self, where: tuple[slice, ...]) -> torch.Tensor:
        experts, outputs, *inputs = where
        return torch.stack([self._joined(row, outputs, *inputs) for row in self._rows[experts]])

    def _joined(self, row: Sequence[Any], outputs: slice, *inputs: slice) -> torch.Tensor:
        parts = []
        first = 0
        for matrix in row:
            size = matrix.get_shape()[0]
            begin = max(outputs.start - first, 0)
            end = min(outputs.stop - first, size)
            if begin < end:
                parts.append(matrix[(slice(begin, end), *inputs)])
            first += size
        return torch.cat(parts)


def keys_of(model: nn.Module, stored: Iterable[str]) -> dict[str, Any]:
    """Return name in a model → key in its files, or rows of keys of what transformers stacks.

    What transformers would compute otherwise on reading is left out, so that it is missed by its name.
    """
    if not hasattr(model, "base_model_prefix"):
        return {key: key for key in stored}
    mapping = import_module("transformers.conversion_mapping").get_model_conversion_mapping(model)
    loading = import_module("transformers.core_model_loading")
    computed = [each for each in mapping if isinstance(each, loading.WeightConverter)]
    renamed = [each for each in mapping if not isinstance(each, loading.WeightConverter)]
    whole = model.state_dict()
    found: dict[str, Any] = {}
    stacked: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for key in sorted(stored, key=loading.dot_natural_key):
        name, pattern = loading.rename_source_key(key, renamed, computed, model.base_model_prefix, whole)
        if pattern is None:
            found[name] = key
        elif is_stack(next(each for each in computed if pattern in each.source_patterns)):
            stacked[name][pattern].append(key)
    for name, by_pattern in stacked.items():
        converter = next(each for each in computed if set(by_pattern) <= set(each.source_patterns))
        columns = [by_pattern[pattern] for pattern in converter.source_patterns]
        found[name] = list(zip(*columns, strict=True))
    return found


def is_stack(converter: Any) -> bool:  # noqa: ANN401 - of transformers
    """Return whether transformers only stacks experts along the first dim, and joins their matrices along the next."""
    kinds = [(type(each).__name__, each.dim) for each in converter.operations]
    return kinds in ([("MergeModulelist", 0)], [("MergeModulelist", 0), ("Concatenate", 1)])


def _files(path: Path) -> dict[str, Path]:
    """Return key → file.

    Raises:
        PlanError: There is none.
    """
    if path.is_file() and path.suffix == ".safetensors":
        return dict.fromkeys(_keys(path), path)
    if (path / _INDEX).is_file():
        index = json.loads((path / _INDEX).read_text(encoding="utf-8"))
        return {key: path / file for key, file in index["weight_map"].items()}
    if (path / _SINGLE).is_file():
        return dict.fromkeys(_keys(path / _SINGLE), path / _SINGLE)
    raise PlanError(
        f"{path} has no {_SINGLE} and no {_INDEX}.",
        "A folder with one of them on each rank's machine, or the path of one .safetensors file.",
        "Download it before: huggingface_hub.snapshot_download(name); or save it: model.save_pretrained(folder).",
    )


def _keys(file: Path) -> Iterator[str]:
    with _safetensors().safe_open(str(file), framework="pt") as opened:
        yield from opened.keys()


def _safetensors() -> Any:  # noqa: ANN401 - a module without types
    try:
        return import_module("safetensors")
    except ModuleNotFoundError:
        raise MissingExtraError("safetensors", "parallel", "Reading weights per rank") from None


def listed(names: Sequence[str]) -> str:
    """Return some names, of many the first."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"

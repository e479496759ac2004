"""The weights of models in files: what comes back is what was sent, and what a client may not send is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from jupyter_autotrain.agent.ranks.federated import weights
from jupyter_autotrain.agent.ranks.federated.masking import Masks, unmasked_mean
from jupyter_autotrain.agent.ranks.federated.weights import Weights, WeightsError


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Linear(2, 1, dtype=torch.bfloat16))


def test_a_module_gets_the_weights_of_another_one_by_a_file_in_its_own_number_types(tmp_path: Path) -> None:
    source = network()
    source[1](source[0](torch.randn(4, 3)))  # a counter of the second layer becomes 1
    path = str(tmp_path / "w.npz")
    sha256, size = weights.save(path, weights.of_model(source))
    assert size == Path(path).stat().st_size
    target = network()
    weights.into_model(target, weights.load(path, sha256))
    for name, value in source.state_dict().items():
        assert target.state_dict()[name].dtype == value.dtype
        torch.testing.assert_close(target.state_dict()[name], value, rtol=0, atol=0)
    assert target.state_dict()["1.num_batches_tracked"] == 1


def test_arrays_of_a_dict_are_changed_in_place() -> None:
    array = np.zeros(2)
    weights.into_model({"file": array, "note": "text"}, {"file": np.ones(2)})
    np.testing.assert_array_equal(array, 1)
    with pytest.raises(TypeError, match="not int"):
        weights.of_model(3)


def _pickled(path: Path) -> None:
    np.savez(path, **{"w:w": np.array([object()], dtype=object)})


def _packed(path: Path) -> None:
    np.savez_compressed(path, **{"w:w": np.zeros(1 << 20)})


def _damaged(path: Path) -> None:
    path.write_bytes(b"PK\x03\x04" + bytes(100))


@pytest.mark.parametrize(
    ("write", "says"), [(_pickled, "cannot be read"), (_packed, "packed"), (_damaged, "cannot be read")]
)
def test_a_file_that_could_run_code_or_unpack_to_any_size_is_refused(
    tmp_path: Path, write: Callable[[Path], None], says: str
) -> None:
    path = tmp_path / "w.npz"
    write(path)
    with pytest.raises(WeightsError, match=says):
        weights.load(str(path), weights.digest(str(path)))
    with pytest.raises(WeightsError, match="digest"):
        weights.load(str(path), "0" * 64)


def test_masks_cancel_out_in_the_sum_and_two_clients_get_none() -> None:
    keys = [Masks() for _ in range(3)]
    members = {str(number): one.public for number, one in enumerate(keys, 1)}
    values: list[Weights] = [{"w": np.full(2, float(number)), "b": np.array(-1.5)} for number in (1, 2, 3)]
    masked = [one.mask(value, 10, members, 7) for one, value in zip(keys, values, strict=True)]
    found = unmasked_mean(masked, 30)
    np.testing.assert_allclose(found["w"], 2.0, atol=1e-8)
    np.testing.assert_allclose(found["b"], -1.5, atol=1e-8)
    with pytest.raises(WeightsError, match="3 clients or more"):
        keys[0].mask(values[0], 1, {"1": keys[0].public, "2": keys[1].public}, 8)
    with pytest.raises(WeightsError, match="not finite"):
        keys[0].mask({"w": np.array([np.nan])}, 1, members, 9)

"""Settings of torch that can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType

from jupyter_autotrain.capture.state.literals import arguments

_PRINTING = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}


def _dtype(torch: ModuleType) -> Iterator[str]:
    if (dtype := torch.get_default_dtype()) is not torch.float32:
        yield f"{{m}}.set_default_dtype({str(dtype).replace('torch', '{m}', 1)})"


def _device(torch: ModuleType) -> Iterator[str]:
    if (device := torch.get_default_device()).type != "cpu":
        yield f"{{m}}.set_default_device({str(device)!r})"


def _deterministic(torch: ModuleType) -> Iterator[str]:
    if torch.are_deterministic_algorithms_enabled():
        only_warns = torch.is_deterministic_algorithms_warn_only_enabled()
        yield f"{{m}}.use_deterministic_algorithms(True, warn_only={only_warns})"


def _autocast(torch: ModuleType) -> Iterator[str]:
    for device in ("cpu", "cuda"):
        if torch.is_autocast_enabled(device):
            dtype = str(torch.get_autocast_dtype(device)).replace("torch", "{m}", 1)
            yield f"{{m}}.set_autocast_dtype({device!r}, {dtype})"
            yield f"{{m}}.set_autocast_enabled({device!r}, True)"


def _inference(torch: ModuleType) -> Iterator[str]:
    if torch.is_inference_mode_enabled():
        yield "{m}.inference_mode_here = {m}.inference_mode()"  # it ends with its object
        yield "{m}.inference_mode_here.__enter__()"


def _anomaly(torch: ModuleType) -> Iterator[str]:
    if torch.is_anomaly_enabled():
        yield f"{{m}}.autograd.set_detect_anomaly(True, check_nan={torch.is_anomaly_check_nan_enabled()})"


def _cudnn(torch: ModuleType) -> Iterator[str]:
    cudnn = torch.backends.cudnn
    for name, default in (("deterministic", False), ("benchmark", False), ("enabled", True)):
        if (value := getattr(cudnn, name)) != default:
            yield f"{{m}}.backends.cudnn.{name} = {value}"


def _printing(torch: ModuleType) -> Iterator[str]:
    options = torch._tensor_str.PRINT_OPTS  # noqa: SLF001 - torch has no public way to read them
    changed = {name: value for name, default in _PRINTING.items() if (value := getattr(options, name)) != default}
    if changed:
        yield f"{{m}}.set_printoptions({arguments(changed)})"


SETTINGS: tuple[tuple[tuple[str, ...], Callable[[ModuleType], Iterator[str]]], ...] = (
    (("torch.set_default_dtype", "torch.set_default_tensor_type"), _dtype),
    (("torch.set_default_device",), _device),
    (("torch.use_deterministic_algorithms", "torch.set_deterministic"), _deterministic),
    (("torch.autocast", "torch.amp.autocast", "torch.set_autocast"), _autocast),
    (("torch.inference_mode",), _inference),
    (("torch.autograd.set_detect_anomaly",), _anomaly),
    (
        ("torch.backends.cudnn.deterministic", "torch.backends.cudnn.benchmark", "torch.backends.cudnn.enabled"),
        _cudnn,
    ),
    (("torch.set_printoptions",), _printing),
)
"""(how the full names of what sets it begin, how to read it) for each setting."""

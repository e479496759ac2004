"""Settings of torch and of matplotlib that can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType

from jupyter_autotrain.capture.state.paths import arguments, is_literal_value

_PRINTING = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}


def _dtype(torch: ModuleType) -> Iterator[str]:
    if (dtype := torch.get_default_dtype()) is not torch.float32:
        yield f"{{m}}.set_default_dtype({str(dtype).replace('torch', '{m}', 1)})"


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


def _printing(torch: ModuleType) -> Iterator[str]:
    options = torch._tensor_str.PRINT_OPTS  # noqa: SLF001 - torch has no public way to read them
    changed = {name: value for name, default in _PRINTING.items() if (value := getattr(options, name)) != default}
    if changed:
        yield f"{{m}}.set_printoptions({arguments(changed)})"


SETTINGS: tuple[tuple[tuple[str, ...], Callable[[ModuleType], Iterator[str]]], ...] = (
    (("torch.set_default_dtype", "torch.set_default_tensor_type"), _dtype),
    (("torch.use_deterministic_algorithms", "torch.set_deterministic"), _deterministic),
    (("torch.autocast", "torch.amp.autocast", "torch.set_autocast"), _autocast),
    (("torch.inference_mode",), _inference),
    (("torch.autograd.set_detect_anomaly",), _anomaly),
    (("torch.set_printoptions",), _printing),
)
"""(how the full names of what sets it begin, how to read it) for each setting."""


# The settings of matplotlib: whatever the style, theme or assignment they come from


_OF_THE_WINDOW = ("backend", "interactive", "keymap.", "toolbar", "tk.", "webagg.")
SETTERS = (
    "matplotlib.rc", "matplotlib.pyplot.rc", "matplotlib.style.", "matplotlib.pyplot.style.", "seaborn.set",
    "seaborn.reset", "pylab.rc",
)  # fmt: skip


def read(matplotlib: ModuleType) -> Iterator[str]:
    """Yield one statement that sets every parameter that is not as matplotlib and the user's own file set it."""
    default = matplotlib.rcParamsOrig
    pairs: list[str] = []
    for key in matplotlib.rcParams:
        if key.startswith(_OF_THE_WINDOW):
            continue
        value = matplotlib.rcParams[key]
        text = _text(value) if value != default.get(key) else ""
        if text:
            pairs.append(f"{key!r}: {text}")
    if pairs:
        yield f"{{m}}.rcParams.update({{{', '.join(pairs)}}})"


def _text(value: object) -> str:
    by_key = getattr(value, "by_key", None)
    if by_key is not None:  # a cycler
        return f'__import__("cycler").cycler(**{by_key()!r})'
    return repr(value) if is_literal_value(value) else ""

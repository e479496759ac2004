"""The settings of matplotlib: whatever the style, theme or assignment they come from."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from jupyter_autotrain.capture.state.literals import is_literal_value

_OF_THE_WINDOW = ("backend", "interactive", "keymap.", "toolbar", "tk.", "webagg.")
SETTERS = (
    "matplotlib.rc", "matplotlib.pyplot.rc", "matplotlib.style.", "matplotlib.pyplot.style.", "seaborn.set",
    "seaborn.reset", "pylab.rc",
)  # fmt: skip


def read(matplotlib: ModuleType) -> Iterator[str]:
    """One statement that sets every parameter that is not as matplotlib and the user's own file set it."""
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

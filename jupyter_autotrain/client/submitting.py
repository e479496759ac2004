"""Submitting from Python: functions and sources become experiments.

This is an entry point: variables, folder and clock are read here and passed on.
"""

from __future__ import annotations

import functools
import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Generic, ParamSpec, TypeVar

from jupyter_autotrain import backends, capture
from jupyter_autotrain import header as headers
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.client.lookup import default_home, here
from jupyter_autotrain.client.rerun import Dialogue
from jupyter_autotrain.client.submission import Draft, capture_settings, submit_draft
from jupyter_autotrain.client.waiting import in_terminal
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Origin

P = ParamSpec("P")
T = TypeVar("T")


def submit(fn_or_source: Callable[..., object] | str, *, home: Home | None = None, **header: object) -> Experiment:
    """Train in the background; the same as a `%%autotrain` cell.

    Args:
        fn_or_source: A function, sent with all it uses, or Python source.
        home: Where to keep the experiment; None means the user's home folder of experiments.
        header: The keys of a cell header, such as `search={"lr": "loguniform(1e-4, 1e-1)"}`, `trials=12`.

    Raises:
        HeaderError: With all faults of the header.
        CaptureError: Something the code needs cannot be sent.
        BackendUnavailableError: The chosen backend cannot do it.
        StoreError: It cannot be stored; then nothing was started.
    """
    cwd = Path.cwd()
    parsed = headers.from_mapping(header, backends.header_context(cwd, os.environ))
    settings = capture_settings(parsed, cwd)
    if isinstance(fn_or_source, str):
        name = "script"
        captured = capture.capture(textwrap.dedent(fn_or_source), {}, label="source", **settings)
    else:
        name = fn_or_source.__name__.strip("<>")
        captured = capture.from_function(fn_or_source, **settings)
    draft = Draft(parsed, captured, name, here() or Origin(), cwd, os.environ)
    for line in filter(None, (capture.format_differences(captured.differences), *captured.notes)):
        sys.stdout.write(f"{line}\n")
    dialogue = Dialogue(sys.stdout.write, input)
    return submit_draft(draft, home or default_home(), dialogue, in_terminal(sys.stderr)).experiment


class TrialFunction(Generic[P, T]):
    """A function with a header: calling it runs it here, `submit` trains it in the background."""

    def __init__(self, fn: Callable[P, T], header: dict[str, object]) -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn
        self.header = header

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the function here and now."""
        return self.fn(*args, **kwargs)

    def submit(self, *, home: Home | None = None, **overrides: object) -> Experiment:
        """Submit it; keys given here override those of the decorator. Raises what `submit` raises."""
        return submit(self.fn, home=home, **{**self.header, **overrides})


def trial(**header: object) -> Callable[[Callable[P, T]], TrialFunction[P, T]]:
    """Give a function a header: `@trial(objective="maximize val_acc", trials=12)`, then `fn.submit()`."""
    return lambda fn: TrialFunction(fn, header)

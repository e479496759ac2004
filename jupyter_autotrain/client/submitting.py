"""Submitting from Python: functions and sources become experiments.

This is an entry point: environment, folder and clock are read here and passed on.
"""

from __future__ import annotations

import functools
import os
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Generic, ParamSpec, TypeVar

from jupyter_autotrain import backends, capture
from jupyter_autotrain import header as headers
from jupyter_autotrain.client import data_files
from jupyter_autotrain.client.check import check
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.client.lookup import default_home
from jupyter_autotrain.client.origin import here
from jupyter_autotrain.client.patience import Patience
from jupyter_autotrain.client.progress import in_terminal
from jupyter_autotrain.client.python_environment import with_requirements
from jupyter_autotrain.client.rerun import Dialogue, before_rerun
from jupyter_autotrain.client.send import send
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.origin import Origin
from jupyter_autotrain.core.spec import Bundle

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
    home, cwd = home or default_home(), Path.cwd()
    parsed = headers.from_mapping(header, backends.header_context(cwd, os.environ))
    name = "script" if isinstance(fn_or_source, str) else fn_or_source.__name__.strip("<>")
    captured = _capture(fn_or_source, parsed, cwd)
    capture.check_reports(captured.reports, parsed.objective.metric if parsed.objective else "")
    origin = here() or Origin()
    spec = replace(parsed.to_spec(bundle=captured.bundle, name=name, environ=os.environ), origin=origin)
    patience = Patience()
    checked = check(with_requirements(spec, cwd), home, patience=patience)
    spec = checked.spec
    for line in filter(None, (capture.format_differences(captured.differences), *captured.notes, *checked.notes)):
        sys.stdout.write(f"{line}\n")
    before_rerun(home, spec, os.environ, parsed.on_rerun, Dialogue(sys.stdout.write, input), patience)
    with in_terminal(sys.stderr) as progress:

        def write_bundle(folder: Path) -> Bundle:
            return capture.write_bundle(captured, folder, progress.written, cwd=str(cwd))

        spec, data = data_files.read(home, spec, cwd, progress)
        return send(home, spec, write_bundle, os.environ, data)


def _capture(fn_or_source: Callable[..., object] | str, header: headers.Header, cwd: Path) -> capture.Capture:
    limits = capture.CaptureLimits(files=header.ship.limits.files, file_bytes=header.ship.limits.size)
    if isinstance(fn_or_source, str):
        return capture.capture(
            textwrap.dedent(fn_or_source), {}, cwd=cwd, parameters=frozenset(header.search), ship=header.ship.patterns,
            limits=limits, label="source", not_secrets=header.not_secrets, returns=header.returns,
            seed=header.seed, trials=header.trial_count, variables=header.variables, data=header.data_paths,
        )  # fmt: skip
    return capture.from_function(
        fn_or_source, cwd=cwd, parameters=frozenset(header.search), ship=header.ship.patterns,
        limits=limits, not_secrets=header.not_secrets, returns=header.returns,
        seed=header.seed, trials=header.trial_count, variables=header.variables, data=header.data_paths,
    )  # fmt: skip


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

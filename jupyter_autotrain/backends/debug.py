"""The debug backend: a trial runs in this very process, so that `pdb`, `breakpoint()` and tests reach into it."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from jupyter_autotrain.agent import files, system, wire
from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.agent.ranks import api
from jupyter_autotrain.agent.ranks.cell_runner import CellRunner, enter_work
from jupyter_autotrain.agent.service import status_resolution
from jupyter_autotrain.agent.supervisor.termination import remove_temporary_files
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity
from jupyter_autotrain.agent.trial import environment
from jupyter_autotrain.agent.trial import status as statuses
from jupyter_autotrain.backends.local import trial_directory
from jupyter_autotrain.core.backend import BackendContext, CancelReceipt, JobRef, Probe, Submission
from jupyter_autotrain.core.capabilities import Capabilities
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.errors import BackendError

if TYPE_CHECKING:
    from pydantic import BaseModel


class DebugBackend(trial_directory.TrialDirectoryBackend):
    """A backend that runs a trial inside `submit`, which returns when the cell has ended.

    It runs one trial at a time, without limits and without GPU slots.

    Args:
        profile: Its name and options.
        context: The home; trials run in its trial directories.
    """

    capabilities = Capabilities(survives_manager=False, shares_home=True)

    def __init__(self, profile: Profile, context: BackendContext) -> None:
        self.name = profile.name
        self._profile = profile
        self._context = context

    @staticmethod
    def options_model() -> type[BaseModel]:
        """Return the model of a section without options."""
        from jupyter_autotrain.backends.local.options import DebugOptions  # noqa: PLC0415 - the manager has no use for it

        return DebugOptions

    def probe(self) -> Probe:
        """Report that it can be used wherever Python runs."""
        return Probe(True, "Trials run inside this process, one at a time, without limits.")

    def discover(self) -> Inventory:
        """Return one node with one CPU, for one trial at a time."""
        memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        node = Node(platform.node(), cpus=1.0, memory_bytes=memory_bytes, machine_id=system.boot_id())
        return Inventory((node,), limits="limits are not kept: trials run in this process")

    def render(self, trial: TrialSpec, placement: Placement) -> Submission:
        """Return the trial's file and environment without a command, because the script runs right here."""
        content = trial_directory.trial_file_content(trial, placement, self._profile, self._context)
        return Submission(
            argv=(),
            env=environment.complete(content, {}),
            files={wire.TRIAL_FILE: json.dumps(content, indent=1, sort_keys=True)},
            notes=("runs inside this process",),
        )

    def submit(self, trial: TrialSpec, placement: Placement, secrets: Mapping[str, str]) -> JobRef:
        """Run the trial, here and now, unless it ran before."""
        if secrets or trial.secrets:
            raise BackendError(
                "The debug backend cannot keep secrets: its trials share this process.", "", "Use `backend: local`."
            )
        if trial.resources.workers_per_node != 1:
            found = f"The debug backend runs one worker, in this process; {trial.resources.workers_per_node} are asked."
            raise BackendError(found, "", "Use `backend: local`.")
        directory = self._context.directory(trial)
        ref = JobRef(self.name, trial.job_id, {"directory": str(directory)})
        if statuses.is_there(directory):
            return ref
        trial_directory.check_data(trial, self._context)
        plan = self.render(trial, placement)
        bundle = str(self._context.bundle(trial))
        for name in wire.FOLDERS:
            files.make_directories(directory / name)
        wire.write_atomically(str(directory / wire.TRIAL_FILE), plan.files[wire.TRIAL_FILE].encode())
        status = _first_status()
        statuses.write(directory, status)
        with _inside(directory, plan.env):
            context = api.load(str(directory))
            enter_work(str(directory), bundle)
            outcome, code = CellRunner(context).run()
        remove_temporary_files(str(directory), bundle)
        ended: statuses.Status = {key: outcome[key] for key in ("state", "reason", "traceback", "cell_line", "kind")}
        statuses.write(directory, status | ended | {"ended_s": time.time(), "exit_code": code})
        return ref

    def cancel(self, ref: JobRef, grace_s: float) -> CancelReceipt:  # noqa: ARG002 - nothing can be forced here
        """Ask a trial that still runs, in another thread, to stop; only the end of this process would force it."""
        try:
            status = status_resolution.resolve_status(trial_directory.directory(ref))
        except statuses.UnknownError as error:
            raise BackendError(f"The state of {ref.job_id} is not known: {error}.", "", "Ask again later.") from error
        if status is None or statuses.is_final(status):
            return CancelReceipt(note=f"it had ended before: {status['state']}" if status else "it was never started")
        self.put(ref, wire.STOP_FILE, b"Cancelled on request.")
        return CancelReceipt(pids_left=(os.getpid(),), note="it runs in this process; should_stop() is true now")

    def close(self) -> None:
        """Do nothing, because nothing is held."""


def _first_status() -> statuses.Status:
    me = cast("JsonValue", ProcessIdentity.of(os.getpid()).to_json())
    return {
        "wire": wire.VERSION, "state": "RUNNING", "reason": "", "exit_code": None, "signal": None, "supervisor": me,
        "worker": me, "started_s": time.time(), "ended_s": None, "peak_memory_bytes": None,
        "limits": "none: runs in this process", "groups": [], "traceback": "", "cell_line": "", "kind": "",
    }  # fmt: skip


class _Tee:
    """A stream that writes to the trial's file and to the original stream, for the debugger's prompt."""

    def __init__(self, file: TextIO, stream: TextIO) -> None:
        self._file = file
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(text)
        return self._file.write(text)

    def flush(self) -> None:
        self._stream.flush()
        self._file.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


@contextlib.contextmanager
def _inside(directory: Path, env: Mapping[str, str]) -> Iterator[None]:
    """Take over a trial's streams, folder, environment and `__main__`, and restore this process's own at the end."""
    kept = (Path.cwd(), dict(os.environ), list(sys.path), list(sys.argv), sys.modules["__main__"])
    with contextlib.ExitStack() as stack:
        for name, redirect in ((wire.STDOUT, contextlib.redirect_stdout), (wire.STDERR, contextlib.redirect_stderr)):
            file = stack.enter_context(_append_to(directory / name))
            stack.enter_context(redirect(_Tee(file, getattr(sys, name))))
        os.environ.clear()
        os.environ.update(env)
        try:
            yield
        finally:
            cwd, environ, sys.path[:], sys.argv[:], sys.modules["__main__"] = kept
            os.chdir(cwd)
            os.environ.clear()
            os.environ.update(environ)
            _forget_modules_of(directory)


def _forget_modules_of(directory: Path) -> None:
    """Let the next trial import its own shipped modules, not those of this one."""
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(f"{directory}/"):
            del sys.modules[name]


def _append_to(path: Path) -> TextIO:
    return open(path, "a", buffering=1, encoding="utf-8", opener=files.private_opener)

"""A minimal backend of a third party: trials run in a folder of its own, and their files are copied."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from jupyter_autotrain.agent import wire
from jupyter_autotrain.backends.local import LocalBackend
from jupyter_autotrain.backends.trial_content import from_last_saved, in_home
from jupyter_autotrain.core.backend import (
    BackendContext,
    CancelReceipt,
    Chunk,
    Cursor,
    JobRef,
    JobStatus,
    Probe,
    Profile,
    Submission,
)
from jupyter_autotrain.core.capabilities import PollInterval
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.inventory import Inventory
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.header.sections.section import Section
from jupyter_autotrain.header.types import Text

_DEFAULT_ROOT = "/var/tmp/trials"


class CopyingOptions(Section):
    """Options of the copying backend."""

    root: Text = Field(default=_DEFAULT_ROOT, description="Where trials run.", examples=["/scratch"])


class CopyingBackend:
    """Sends each bundle once, by its digest, and runs trials as processes beside it.

    Args:
        profile: Its name and options.
        context: Where bundles come from.
    """

    capabilities = replace(LocalBackend.capabilities, shares_home=False)
    poll_interval = PollInterval(least_s=0.02, most_s=1.0)

    def __init__(self, profile: Profile, context: BackendContext) -> None:
        self.name = profile.name
        self._profile = profile
        self._context = context
        self._runner = self._runner_at(_DEFAULT_ROOT)  # for what needs no root: a job says where it is

    def _runner_at(self, root: str) -> LocalBackend:
        return LocalBackend(Profile(self.name, "local"), BackendContext(Home(Path(root))))

    def _root(self, trial: TrialSpec) -> str:
        options = {"root": _DEFAULT_ROOT, **self._profile.options, **trial.options}
        return str(options["root"])

    @staticmethod
    def options_model() -> type[CopyingOptions]:
        return CopyingOptions

    def probe(self) -> Probe:
        return self._runner.probe()

    def discover(self) -> Inventory:
        return self._runner.discover()

    def render(self, trial: TrialSpec, placement: Placement) -> Submission:
        return self._runner_at(self._root(trial)).render(trial, placement)

    def submit(self, trial: TrialSpec, placement: Placement, secrets: Mapping[str, str]) -> JobRef:
        there = Home(Path(self._root(trial)))
        self._send_bundle(trial, there)
        theirs = BackendContext(there)
        trial = from_last_saved(trial, self._context, lambda n: bool(in_home(theirs, replace(trial, resume_attempt=n))))
        if trial.resume_attempt is not None:
            self._send_checkpoints(trial, trial.resume_attempt, there)
        return self._runner_at(self._root(trial)).submit(trial, placement, secrets)

    def _send_bundle(self, trial: TrialSpec, there: Home) -> None:
        store = there.root / "bundles" / trial.bundle_sha256
        if not store.exists():
            draft = store.with_name(f"{store.name}.{os.urandom(4).hex()}")
            shutil.copytree(self._context.bundle(trial), draft)
            try:
                draft.rename(store)
            except OSError:  # another one was faster
                shutil.rmtree(draft)
        noted = self._context.home.data_manifest(trial.experiment_id, "").parent
        if noted.exists():
            shutil.copytree(noted, there.data_manifest(trial.experiment_id, "").parent, dirs_exist_ok=True)
        bundle = there.bundle(trial.experiment_id)
        bundle.parent.mkdir(parents=True, exist_ok=True)
        if not bundle.exists():
            link = bundle.with_name(f"bundle.{os.urandom(4).hex()}")
            link.symlink_to(store)
            link.replace(bundle)

    def _send_checkpoints(self, trial: TrialSpec, before: int, there: Home) -> None:
        """Send those that another backend has left; its own are there."""
        brought = self._context.directory(trial, before) / wire.CHECKPOINTS
        goal = there.trial(trial.experiment_id, trial.number, before) / wire.CHECKPOINTS
        if brought.exists() and not goal.exists():
            shutil.copytree(brought, goal)

    def poll(self, refs: Sequence[JobRef]) -> list[JobStatus]:
        return self._runner.poll(refs)

    def read(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        return self._runner.read(cursors)

    def put(self, ref: JobRef, path: str, data: bytes) -> None:
        self._runner.put(ref, path, data)

    def sizes(self, ref: JobRef, path: str) -> dict[str, int]:
        return self._runner.sizes(ref, path)

    def missing_paths(self, paths: Sequence[str]) -> list[tuple[str, str]]:
        return self._runner.missing_paths(paths)

    def fetch(self, ref: JobRef, path: str, target: str) -> None:
        self._runner.fetch(ref, path, target)

    def cancel(self, ref: JobRef, grace_s: float) -> CancelReceipt:
        return self._runner.cancel(ref, grace_s)

    def close(self) -> None:
        self._runner.close()

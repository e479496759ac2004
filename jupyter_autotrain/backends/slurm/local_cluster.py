"""A cluster whose commands are on this machine."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import cast

from jupyter_autotrain.backends.local import trial_directory
from jupyter_autotrain.backends.slurm.cluster import MOVED
from jupyter_autotrain.backends.slurm_login import kept_code
from jupyter_autotrain.backends.slurm_login.controller import SlurmController
from jupyter_autotrain.backends.ssh import agent_experiments
from jupyter_autotrain.backends.ssh.agent_tree import agent_folder
from jupyter_autotrain.backends.ssh.sending import FolderManifest, scan_folder
from jupyter_autotrain.core import home_identity
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.json import JsonObject, JsonValue
from jupyter_autotrain.core.spec import TrialSpec


class LocalCluster(trial_directory.TrialDirectoryBackend):
    """Slurm's commands are here. Trials run in the home's trial directories, or below `workdir`.

    Args:
        workdir: A folder that the nodes share; "" where they share the home.
        context: The home.
    """

    def __init__(self, workdir: str, context: BackendContext) -> None:
        self.shares_home = not workdir
        self._context = context
        self._root = Path(workdir).expanduser().absolute() if workdir else context.home.root / "slurm"
        self._jobs_folder = self._root / "jobs" / (home_identity.identity(context.home) if workdir else "")
        self._controller = SlurmController(self._root)
        self._has_code = False

    def ask(self, call: str, **content: object) -> JsonValue:
        """Ask the controller, in this process."""
        return cast("JsonValue", self._controller.handle({"call": call, **content}))

    def ref_data(self, job_id: str) -> JsonObject:
        """The absolute path of the trial directory."""
        if self.shares_home:
            experiment_id, number, attempt = job_id.rsplit("-", 2)
            return {"directory": str(self._context.home.trial(experiment_id, int(number), int(attempt)))}
        return {"directory": str(self._jobs_folder / job_id)}

    def trials_folder(self) -> str:
        """The home's own, or one below `workdir`."""
        return str(self._context.home.root if self.shares_home else self._jobs_folder)

    def experiments_there(self) -> Mapping[str, int]:
        """Those below `workdir`."""
        return {} if self.shares_home else agent_experiments.sizes(Path(self.trials_folder()))

    def remove_experiments(self, experiments: Collection[str]) -> None:
        """Those below `workdir`, and the code there that none needs any more."""
        if not self.shares_home:
            agent_experiments.remove(Path(self.trials_folder()), experiments)
            self.ask("remove_code")

    def send_bundle(self, trial: TrialSpec) -> str:
        """The home's own, or a copy below `workdir`."""
        bundle = self._context.bundle(trial)
        if self.shares_home:
            return str(bundle)
        if not self._has_code:
            self._controller.code = _copy(agent_folder(), self._root / "agents")
            self._has_code = True
        return str(_copy(scan_folder(bundle), self._root / kept_code.FOLDER))

    def forget_bundle(self, path: str) -> None:
        """It is looked for each time."""

    def send_checkpoints(self, kept: Path, job_id: str) -> str:
        """The home's own, or a copy below `workdir`."""
        if self.shares_home:
            return str(kept)
        return str(_copy(scan_folder(kept), Path(str(self.ref_data(job_id)["directory"])) / MOVED))

    def place_data(self, trial: TrialSpec, limit_bytes: int | None) -> JsonObject:  # noqa: ARG002 - nothing is copied
        """It is read where it lies: the nodes see this machine's files."""
        trial_directory.check_data(trial, self._context)
        return {}

    def close(self) -> None:
        """Nothing is held."""


def _copy(folder: FolderManifest, parent: Path) -> Path:
    """Copy a folder to one named by its digest, unless it is there."""
    goal = parent / folder.digest
    if goal.is_dir():
        return goal
    draft = parent / f"{folder.digest}.draft-{id(folder)}"
    for name in folder.folders:
        (draft / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in folder.files:
        target = draft / file.path
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(file.source, target)
        target.chmod(0o700 if file.is_executable else 0o600)
    try:
        draft.rename(goal)
    except OSError:  # another one was faster
        shutil.rmtree(draft, ignore_errors=True)
    return goal

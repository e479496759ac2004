"""The home folder: where the store, the socket and all experiments lie. Paths only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Home:
    """Paths below one home folder."""

    root: Path

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], data_dir: Path) -> Home:
        """Find the home: `JUPYTER_AUTOTRAIN_HOME`, else `autotrain` in the Jupyter data directory."""
        chosen = environ.get("JUPYTER_AUTOTRAIN_HOME")
        return cls(Path(chosen).expanduser().absolute() if chosen else data_dir / "autotrain")

    @property
    def store(self) -> Path:
        """The SQLite file."""
        return self.root / "store.sqlite"

    @property
    def identity(self) -> Path:
        """The file that tells this home from all others (`core.ownership`)."""
        return self.root / "identity"

    @property
    def wakeup_socket(self) -> Path:
        """The manager's Unix socket."""
        return self.root / "manager.sock"

    @property
    def manager_lock(self) -> Path:
        """The file that the living manager keeps locked (flock); it holds the manager's identity."""
        return self.root / "manager.lock"

    @property
    def manager_log(self) -> Path:
        """The file that the manager writes its log to."""
        return self.root / "manager.log"

    @property
    def drafts(self) -> Path:
        """Folders of experiments that are being submitted; locked (flock) while anyone submits."""
        return self.root / "drafts"

    @property
    def environments(self) -> Path:
        """The virtual environments that trials on this machine run with."""
        return self.root / "environments"

    @property
    def checks(self) -> Path:
        """The folder of the results of checking a distant backend before a submit, one file each."""
        return self.root / "checks"

    @property
    def calibrations(self) -> Path:
        """The folder of the constants that were measured at places."""
        return self.root / "calibrations"

    def calibration(self, place: str) -> Path:
        """Return the file of the constants of a place."""
        return self.calibrations / f"{place}.json"

    def experiment(self, experiment_id: str) -> Path:
        """Return the folder of one experiment."""
        return self.root / "experiments" / experiment_id

    def experiment_rows(self, experiment_id: str) -> Path:
        """Return the copy of an experiment's row in the store."""
        return self.experiment(experiment_id) / "rows.json"

    def trial_rows(self, experiment_id: str, number: int) -> Path:
        """Return the copy of a trial's rows in the store."""
        return self.experiment(experiment_id) / "trials" / str(number) / "rows.json"

    def bundle(self, experiment_id: str) -> Path:
        """Return the folder of the code and data of one experiment."""
        return self.experiment(experiment_id) / "bundle"

    def data_manifest(self, experiment_id: str, name: str) -> Path:
        """Return the file with the content of an experiment's `data:` entry at its submission."""
        return self.experiment(experiment_id) / "data" / f"{name}.json"

    @property
    def data(self) -> Path:
        """The cache of data that trials on this machine have fetched."""
        return self.root / "data"

    @property
    def digests(self) -> Path:
        """The digests of files that were submitted as data, so that they are read once."""
        return self.root / "digests"

    def trial(self, experiment_id: str, number: int, attempt: int) -> Path:
        """Return the directory of one attempt of one trial."""
        return self.experiment(experiment_id) / "trials" / str(number) / str(attempt)

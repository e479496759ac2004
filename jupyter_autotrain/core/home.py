"""The home folder: where the store, the socket and all experiments lie, and whether it is its user's alone.

The checks: who owns it, who could replace it, and that nothing in it leads elsewhere. The rule is OpenSSH's
(`safe_path`): the folder and all above it belong to the user or to root, and no other user can write to them. A folder
with the sticky bit, such as /tmp, is taken, since others cannot replace what is in it.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jupyter_autotrain.agent import system
from jupyter_autotrain.errors import StoreError


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
    def agent_requests(self) -> Path:
        """The folder of the cells that agents have asked to submit or to plan, one folder each."""
        return self.root / "agent-requests"

    @property
    def calibrations(self) -> Path:
        """The folder of the constants that were measured at places."""
        return self.root / "calibrations"

    def calibration(self, place: str) -> Path:
        """Return the file of the constants of a place."""
        return self.calibrations / f"{place}.json"

    def experiment(self, experiment_id: str) -> Path:
        """Return the folder of one experiment."""
        return Path(f"{self.root}/experiments/{experiment_id}")  # at once: each part joined costs as much

    def experiment_rows(self, experiment_id: str) -> Path:
        """Return the copy of an experiment's row in the store."""
        return self.experiment(experiment_id) / "rows.json"

    def trial_rows(self, experiment_id: str, number: int) -> Path:
        """Return the copy of a trial's rows in the store."""
        return Path(f"{self.root}/experiments/{experiment_id}/trials/{number}/rows.json")

    def federated(self, experiment_id: str) -> Path:
        """Return the folder of the global model of a federated experiment, and of how far it is."""
        return self.experiment(experiment_id) / "federated"

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
    def fetched(self) -> Path:
        """The labels and files that `data:` has fetched to this machine, one folder for each revision."""
        return self.root / "fetched"

    @property
    def digests(self) -> Path:
        """The digests of files that were submitted as data, so that they are read once."""
        return self.root / "digests"

    def trial(self, experiment_id: str, number: int, attempt: int) -> Path:
        """Return the directory of one attempt of one trial."""
        return Path(f"{self.root}/experiments/{experiment_id}/trials/{number}/{attempt}")


def make_private(home: Home) -> None:
    """Make the home (0700) when there is none, and make sure that it is the user's alone.

    Raises:
        StoreError: It belongs to another user, others could replace it or write to it, or a file in it is a link.
        OSError: It cannot be made or looked at.
    """
    real = Path(os.path.realpath(home.root))
    _check_folders(home, list(filter(_status, real.parents)))
    if not home.root.is_dir():
        for folder in reversed([folder for folder in (real, *real.parents) if not _status(folder)]):
            folder.mkdir(mode=0o700, exist_ok=True)
        home.root.mkdir(mode=0o700, exist_ok=True)  # raises what is in the way
    elif not any(home.root.iterdir()):
        with suppress(PermissionError):
            home.root.chmod(0o700)
    _check_owner(home, real)
    _check_folders(home, [real, *real.parents])
    for path in _files(home):
        if path.is_symlink():
            expected = "A file of its own was expected: no link in a home is followed."
            raise StoreError(f"{path} is a link.", expected, f"Remove {path}.")


def _files(home: Home) -> Iterator[Path]:
    yield from (home.store, home.manager_lock, home.manager_log, home.wakeup_socket, home.drafts)
    for suffix in ("-wal", "-shm", "-journal"):
        yield home.store.with_name(home.store.name + suffix)


def _check_owner(home: Home, real: Path) -> None:
    status = real.stat()
    if status.st_uid != os.geteuid():
        raise StoreError(
            f"The home {home.root} belongs to {_user(status.st_uid)}.",
            f"A folder of your own was expected (you are {_user(os.geteuid())}).",
            "Set JUPYTER_AUTOTRAIN_HOME to a folder of yours.",
        )
    if status.st_mode & stat.S_ISVTX and _is_open(status):
        raise _writable(home, real)


def _check_folders(home: Home, folders: list[Path]) -> None:
    trusted = {os.geteuid(), *system.kernel_root_users()}
    for folder in folders:
        status = folder.stat()
        if status.st_uid not in trusted:
            raise StoreError(
                f"The folder {folder}, in which the home {home.root} lies, belongs to {_user(status.st_uid)}.",
                "Your own or root's was expected: its owner could replace the home.",
                "Set JUPYTER_AUTOTRAIN_HOME to a folder of yours.",
            )
        if _is_open(status) and not status.st_mode & stat.S_ISVTX:
            raise _writable(home, folder)


def _writable(home: Home, folder: Path) -> StoreError:
    inside = "" if folder == Path(os.path.realpath(home.root)) else f"; the home {home.root} is in it"
    return StoreError(
        f"Others can write to {folder} (mode {folder.stat().st_mode & 0o7777:o}){inside}.",
        "A folder that only you can write to was expected: they could replace what is in it.",
        f"Run: chmod go-w {folder}; or set JUPYTER_AUTOTRAIN_HOME to another folder.",
    )


def _is_open(status: os.stat_result) -> bool:
    """Tell whether others than the owner can write; a group that is the user alone is no other."""
    if status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and not _is_of_one(status.st_gid)


def _is_of_one(gid: int) -> bool:
    try:
        me = pwd.getpwuid(os.geteuid())
        group = grp.getgrgid(gid)
    except KeyError:
        return False
    return gid == me.pw_gid and group.gr_name == me.pw_name and set(group.gr_mem) <= {me.pw_name}


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def home_identity(home: Home) -> str:
    """Return twelve hexadecimal digits, made at the first call and kept in the home.

    They differ from those of a home at the same path of another machine, too.

    Raises:
        StoreError: The home is not its user's alone.
        OSError: They cannot be written.
    """
    with suppress(FileNotFoundError):
        return home.identity.read_text(encoding="utf-8")
    make_private(home)
    draft = home.root / f"{home.identity.name}.{os.getpid()}.{threading.get_ident()}.draft"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(os.urandom(6).hex())
    with suppress(FileExistsError):  # another process was first
        home.identity.hardlink_to(draft)
    draft.unlink()
    return home.identity.read_text(encoding="utf-8")

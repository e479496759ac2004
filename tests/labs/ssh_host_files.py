"""The files and accounts of a host of the SSH lab: its own, or those of this machine."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.labs import ssh_lab_files

_BASH = "/bin/bash"
_SH = "/bin/sh"
_FISH = "/usr/bin/fish"
# One for each host, of which none is like another; more hosts have them again, with other uids.
_USERS = (("ada", "/home/ada", _BASH), ("grace", "/users/g/grace", _SH), ("linus", "/data/home/linus", _FISH))
# Further accounts of every host, with a start-up file each: login shells as they are found in the world.
_SHELLS = {"printing": _BASH, "slow": _BASH, "fish": _FISH}
_START_UP = {"printing": "echo 'Welcome to this host'; echo 'Quota: 93 %' >&2\n", "slow": "sleep 1\n"}
_FIRST_UID = 2000
_FOLDERS = ("home", "users", "data", "scratch", "srv", "tmp", "var", "root")


@dataclass(frozen=True, slots=True)
class Account:
    """An account of a host; `home` is a path there."""

    name: str
    uid: int
    home: str
    shell: str

    @property
    def line(self) -> str:
        """Return its line in `/etc/passwd`."""
        return f"{self.name}:x:{self.uid}:{self.uid}::{self.home}:{self.shell}"


class HostFiles(Protocol):
    """The files of a host.

    Attributes:
        accounts: Its accounts; the first is the one that trials run under.
        lab: Where the configuration of its server lies, as a path there.
        script: What its first process does to have these files, in the shell's language.
    """

    accounts: tuple[Account, ...]
    lab: str
    script: str

    def seen_here(self, path: str) -> Path:
        """Return a path of the host as this machine sees it."""
        ...

    def home(self, user: str) -> str:
        """Return the home of an account, as a path there; that of an account that is not there too."""
        ...

    @property
    def passwd(self) -> str:
        """The text of its `/etc/passwd`."""
        ...


class _Files:
    """Common part of both.

    Args:
        accounts: The accounts of the host.
    """

    def __init__(self, accounts: list[Account]) -> None:
        self.accounts = tuple(accounts)
        for account in accounts:
            home = self.seen_here(account.home)
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            if account.name in _START_UP:
                (home / ".bashrc").write_text(_START_UP[account.name])
            for one in (home, *home.iterdir()):
                os.chown(one, account.uid, account.uid)

    def seen_here(self, path: str) -> Path:
        """As `HostFiles.seen_here`."""
        return Path(path)

    def home(self, user: str) -> str:
        """As `HostFiles.home`."""
        return next((account.home for account in self.accounts if account.name == user), f"/no/home/{user}")

    @property
    def passwd(self) -> str:
        """As `HostFiles.passwd`."""
        names = {account.name for account in self.accounts}
        others = [line for line in Path("/etc/passwd").read_text().splitlines() if line.partition(":")[0] not in names]
        return "\n".join([*[account.line for account in self.accounts], *others]) + "\n"


class SharedFiles(_Files):
    """This machine's own; root is the user.

    Args:
        folder: Where the host's homes are made.
        number: The number of the host.
    """

    script = ssh_lab_files.SHARED_FILES

    def __init__(self, folder: Path, number: int) -> None:
        self.lab = str(folder / "lab")
        super().__init__([Account(name, 0, f"{folder}/home-{name}", _BASH) for name in ("root", "printing", "slow")])


class OwnFiles(_Files):
    """A disk of its own, below a folder of this machine, and an ordinary user; programs are this machine's.

    Args:
        folder: Where the disk lies.
        number: The number of the host.
    """

    lab = "/lab"

    def __init__(self, folder: Path, number: int) -> None:
        self._disk = folder / "disk"
        root = folder / "root"
        root.mkdir()
        for name in _FOLDERS:
            (self._disk / name).mkdir(mode=0o755, parents=True)
        (self._disk / "var" / "tmp").mkdir()
        for name in ("tmp", "var/tmp", "scratch"):
            (self._disk / name).chmod(0o1777)
        fields = {"root": root, "folder": folder, "disk": self._disk, "programs": " ".join(_programs())}
        self.script = ssh_lab_files.OWN_FILES.format(**fields)
        super().__init__(_accounts(number))

    def seen_here(self, path: str) -> Path:
        """As `HostFiles.seen_here`."""
        return self._disk / path.lstrip("/")


def _accounts(number: int) -> list[Account]:
    name, home, shell = _USERS[(number - 1) % len(_USERS)]
    first_uid = _FIRST_UID + 100 * number
    found = [Account(name, first_uid, home, shell if Path(shell).exists() else _BASH)]
    for count, (other, other_shell) in enumerate(_SHELLS.items(), 1):
        if Path(other_shell).exists():
            found.append(Account(other, first_uid + count, f"/home/{other}", other_shell))
    return found


def _programs() -> list[str]:
    """Return the folders of the interpreters that tests run on hosts, but for those of the operating system."""
    base = Path(sys.base_prefix)
    folders = {base.parent, base.resolve().parent, Path(sys.prefix)}
    return sorted(str(folder) for folder in folders if not folder.is_relative_to("/usr") and folder != Path("/"))

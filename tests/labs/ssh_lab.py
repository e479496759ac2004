"""Real OpenSSH servers on hosts of their own, made of Linux namespaces on this machine.

Each host has its own network, hostname, process ids, host key, files and boot id; all hosts and the controller are on
one bridge. Of this machine's files a host sees programs only: it has a disk of its own, which a reboot keeps, and on it
an ordinary user with a name, a uid, a home and a login shell that no other host has.

Nothing listens outside of these namespaces. Every namespace lives as long as its first process, which ends when its
standard input closes: so everything ends with the process that made the lab, killed or not.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from jupyter_autotrain.testing import wait_until
from tests.labs import namespaces, silent_disk, ssh_lab_files
from tests.labs.ssh_host_files import HostFiles, OwnFiles, SharedFiles

_NETWORK = "10.77.0"
_KILLS = 20  # what is killed may have started another one just then
_END_S = 0.5
_OF_HOSTS = ("sshd:", "/usr/sbin/sshd", "cat")
_PROGRAMS = ("sshd", "ssh-keygen", "ip", "unshare", "nsenter")


def missing() -> str:
    """Why there can be no lab on this machine; "" when there can be one."""
    if os.geteuid() != 0:
        return "hosts in network namespaces need root"
    lacking = [name for name in _PROGRAMS if shutil.which(name, path=namespaces.search_path()) is None]
    if lacking:
        return f"hosts in network namespaces need {', '.join(lacking)}: sh .ci/ssh installs them"
    command = ("unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--mount-proc", "true")
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"namespaces are not allowed here: {tried.stderr.strip()}"


class LabHost:
    """One host.

    Attributes:
        name: Its hostname, and its name in the lab's `ssh_config`.
        address: Its address in the lab's network.
        folder: Where all that it has lies on this machine.
        files: Its files.
    """

    def __init__(self, lab: SshLab, number: int) -> None:
        self.name = f"h{number}"
        self.address = f"{_NETWORK}.{10 + number}"
        self.folder = lab.folder / self.name
        self._lab = lab
        self._number = number
        self._port = f"port{number}"
        self.folder.mkdir(mode=0o755)
        kind = SharedFiles if lab.shares_files else OwnFiles
        self.files: HostFiles = kind(self.folder, number)
        self._make_server()
        self._begin()

    def _begin(self) -> None:
        self._process = self._start()
        self._is_cut = False
        self._first_processes = set(wait_until(self._all_first, "what keeps the host"))

    def _make_server(self) -> None:
        """Configure the SSH server, in the folder that the host calls `files.lab`."""
        self.server.mkdir(mode=0o755)
        for name in ("authorized_keys", "authority.pub"):
            shutil.copy(self._lab.folder / name, self.server)
        config = ssh_lab_files.SSHD_CONFIG.format(address=self.address, lab=self.files.lab)
        (self.server / "sshd_config").write_text(config)
        (self.server / "passwd").write_text(self.files.passwd)
        self.change_key()

    @property
    def server(self) -> Path:
        """The folder of its server, on this machine: configuration, keys and log."""
        return self.folder / "lab"

    @property
    def user(self) -> str:
        """The name of the account that the lab's `ssh_config` logs in to."""
        return self.files.accounts[0].name

    def home(self, user: str = "") -> Path:
        """Return the home folder of an account, as this machine sees it."""
        return self.path(self.files.home(user or self.user))

    def path(self, path: str | Path) -> Path:
        """Return a path of the host, as this machine sees it: what lies on its disk."""
        return self.files.seen_here(str(path))

    def write(self, path: str, text: str, mode: int = 0o644) -> str:
        """Write a file of the host, which belongs to its user; gives the path again."""
        here = self.path(path)
        for folder in reversed(here.parents):
            if not folder.exists():
                self.make_folder(f"/{folder.relative_to(self.path('/'))}")
        here.write_text(text)
        here.chmod(mode)
        self.give(path)
        return path

    def make_folder(self, path: str) -> str:
        """Make a folder of its user's on the host; gives the path again."""
        self.path(path).mkdir(mode=0o700)
        self.give(path)
        return path

    def give(self, path: str) -> None:
        """Have a file of the host, or a folder with all in it, belong to its user."""
        here = self.path(path)
        uid = self.files.accounts[0].uid
        for one in (here, *here.rglob("*")):
            os.chown(one, uid, uid, follow_symlinks=False)

    def start_server(self, name: str, text: str = "", *options: str) -> None:
        """Start another SSH server on the host, configured as the first; `text` goes before that."""
        settings = f"{name}_config"
        (self.server / settings).write_text(text + (self.server / "sshd_config").read_text())
        lab = self.files.lab
        self.run("/usr/sbin/sshd", "-f", f"{lab}/{settings}", "-E", f"{lab}/{name}.log", *options)

    def change_key(self) -> None:
        """Give the host a new key; it is used from the next start on."""
        key = self.server / "host_key"
        key.unlink(missing_ok=True)
        _make_key(key)

    @property
    def public_key(self) -> str:
        """The public host key, as it stands in `known_hosts` after the host's name."""
        return (self.server / "host_key.pub").read_text().strip()

    def _start(self) -> subprocess.Popen[str]:
        (self.server / "boot_id").write_text(f"{uuid.uuid4()}\n")
        script = ssh_lab_files.BEGIN_HOST.format(
            name=self.name,
            files=self.files.script,
            lab=self.files.lab,
            address=self.address,
            hardware_address=f"02:00:00:00:00:{self._number:02x}",
        )
        kinds = ("--net", "--uts", "--mount", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc")
        process = namespaces.begin(("unshare", *kinds, "sh", "-c", script))
        self._lab.in_controller(
            "ip", "link", "add", self._port, "type", "veth", "peer", "name", "eth0", "netns", str(process.pid)
        )
        self._lab.in_controller("ip", "link", "set", self._port, "master", "br0", "up")
        assert process.stdin is not None
        process.stdin.write("connected\n")
        process.stdin.flush()
        namespaces.expect(process, "listening")
        return process

    @property
    def first_pid(self) -> int:
        """The host's first process, by its pid on this machine."""
        outer = self._process.pid
        return int(Path(f"/proc/{outer}/task/{outer}/children").read_text().split()[0])

    def run(self, *argv: str) -> str:
        """Return what a command prints that runs on the host, started without SSH."""
        command = ("nsenter", "--target", str(self.first_pid), "--all", *argv)
        return subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout

    def commands(self) -> dict[int, str]:
        """Return the command lines of what runs on the host but its first process and its SSH servers, by pid there."""
        found = {}
        for process in self._processes():
            with contextlib.suppress(psutil.NoSuchProcess, OSError):
                found[self._pid_there(process)] = " ".join(process.cmdline())
        return {pid: command for pid, command in found.items() if not command.startswith(_OF_HOSTS)}

    def _pid_there(self, process: psutil.Process) -> int:
        """Return the pid that a process has on its host."""
        status = Path(f"/proc/{process.pid}/status").read_text()
        (pids,) = [line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")]
        return int(pids[1])

    def is_gone(self, pid: int) -> bool:
        """Return whether no process of the host has this pid any more; one that is not reaped yet is gone."""
        try:
            state = self.run("ps", "-o", "stat=", "-p", str(pid))
        except subprocess.CalledProcessError:
            return True
        return state.startswith("Z")

    def cut(self) -> None:
        """Take the host off the network: what is sent to it or by it is lost without an answer."""
        self._is_cut = True
        self._lab.in_controller("ip", "link", "set", self._port, "down")

    def heal(self) -> None:
        """Put the host back on the network, unless it is there."""
        if self._is_cut:
            self._lab.in_controller("ip", "link", "set", self._port, "up")
            self._is_cut = False

    def freeze(self) -> None:
        """Stop all processes of the host: its kernel still acknowledges what is sent to it, and nobody answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let all of its processes go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        for process in psutil.Process(self.first_pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    @contextlib.contextmanager
    def silent_disk(self, folder: str) -> Iterator[None]:
        """Put a file system that never answers in the place of a folder of the host, as if its server were gone."""
        enter = ("nsenter", "--target", str(self.first_pid), "--mount")
        program = Path(silent_disk.__file__).read_text()
        process = namespaces.begin((*enter, sys.executable, "-I", "-S", "-c", program, folder))
        try:
            yield
        finally:
            namespaces.end(process)
            self.run("umount", "--lazy", folder)

    def reboot(self) -> None:
        """End all processes of the host, and start it again with another boot id; its disk stays."""
        self.stop()
        self._begin()

    def clear(self) -> None:
        """End what has been started on the host since its start, by a reboot where it does not end at once."""
        with contextlib.suppress(psutil.NoSuchProcess, OSError, IndexError):  # it may have been stopped
            for _ in range(_KILLS):
                later = self._later_processes()
                if not later:
                    return
                for process in later:
                    process.kill()
                psutil.wait_procs(later, timeout=_END_S)
        self.reboot()

    def _all_first(self) -> list[psutil.Process]:
        """Return its first processes once the last of them has begun, which waits for the host's end."""
        found = self._processes()
        return found if any(one.name() == "cat" for one in found) else []

    def _later_processes(self) -> list[psutil.Process]:
        """Return what runs beside its first processes. Its server counts clients that come in while they are killed."""
        now = self._processes()
        if not self._first_processes <= set(now) or any("[accepted]" in "".join(one.cmdline()) for one in now):
            raise psutil.NoSuchProcess(self.first_pid)
        return [one for one in now if one not in self._first_processes]

    def _processes(self) -> list[psutil.Process]:
        return psutil.Process(self.first_pid).children(recursive=True)

    def stop(self) -> None:
        """End all processes of the host."""
        namespaces.end(self._process)
        with contextlib.suppress(subprocess.CalledProcessError):  # the kernel may have removed it by now
            self._lab.in_controller("ip", "link", "del", self._port)


class SshLab:
    """Some hosts, and the controller's namespace, from which they can be reached.

    Args:
        folder: An empty folder that all files of the lab go to; its path must be short of blanks.
        count: How many hosts.
        shares_files: Hosts see all files of this machine and root is their user, as on the nodes of a cluster.
    """

    def __init__(self, folder: Path, count: int, *, shares_files: bool = False) -> None:
        self.folder = folder
        self.folder.chmod(0o700)
        self.shares_files = shares_files
        self._controller = namespaces.begin(
            ("unshare", "--net", "sh", "-c", ssh_lab_files.BEGIN_CONTROLLER.format(network=_NETWORK))
        )
        _make_key(folder / "user_key")
        _make_key(folder / "authority")  # signs certificates of users
        shutil.copy(folder / "user_key.pub", folder / "authorized_keys")
        self.hosts: tuple[LabHost, ...] = ()
        try:
            for number in range(1, count + 1):
                self.hosts += (LabHost(self, number),)
        except BaseException:
            self.close()
            raise
        self.config = folder / "ssh_config"
        self.config.write_text("".join(self._entry(host) for host in self.hosts))
        self.trust(self.hosts)

    def _entry(self, host: LabHost) -> str:
        return ssh_lab_files.SSH_CONFIG.format(name=host.name, address=host.address, user=host.user, folder=self.folder)

    @property
    def known_hosts(self) -> Path:
        """The file of known host keys that the lab's `ssh_config` names."""
        return self.folder / "known_hosts"

    def trust(self, hosts: Sequence[LabHost]) -> None:
        """Make exactly these hosts known, with the keys that they have now."""
        self.known_hosts.write_text("".join(f"{host.address} {host.public_key}\n" for host in hosts))

    def in_controller(self, *argv: str) -> str:
        """Return what a command prints that runs in the controller's network."""
        command = ("nsenter", "--target", str(self._controller.pid), "--net", *argv)
        return subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout

    @property
    def address(self) -> str:
        """The controller's address in the lab's network."""
        return f"{_NETWORK}.1"

    @property
    def controller_pid(self) -> int:
        """The first process of the controller's network."""
        return self._controller.pid

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Put the calling thread, and all threads and processes that it starts, into the controller's network."""
        with namespaces.inside_network(self._controller.pid):
            yield

    def close(self) -> None:
        """End everything; the folder stays to its owner."""
        for host in self.hosts:
            host.stop()
        namespaces.end(self._controller)


def _make_key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)], check=True)

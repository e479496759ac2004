"""podman with a store of its own and one image, made of this machine's own files: no registry, nothing left behind."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

IMAGE = "localhost/autotrain-test:latest"
_PYTHON = "/usr/bin/python3"
_PROGRAMS = ("/bin/sh", "/bin/sleep")
_FOLDERS = ("tmp", "proc", "dev", "etc", "sys", "run", "var/tmp", "root")
_LEFT_OUT = ("__pycache__", "test", "*.a", "config-*", "dist-packages")
# Limits of this process, so that none has to be raised; a driver and a runtime that need the least of the kernel.
_CONF = """
[containers]
default_ulimits = ["nofile={files}:{files}", "nproc={processes}:{processes}"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
_STORAGE = """
[storage]
driver = "vfs"
graphroot = "{folder}/storage"
runroot = "{folder}/run"
"""
_FIND = "import json, sys, sysconfig; print(json.dumps([sys.version_info[:2], sysconfig.get_path('stdlib')]))"


def missing() -> str:
    """Why there can be no containers on this machine; "" when there can be."""
    if os.geteuid() != 0:
        return "containers of the tests need root"
    lacking = [name for name in ("podman", "runc") if shutil.which(name) is None]
    if lacking:
        return f"containers need {' and '.join(lacking)}: sh .ci/podman installs them"
    return "" if Path(_PYTHON).exists() else f"the image needs {_PYTHON}"


class ContainerLab:
    """An image that podman can run, until `close`.

    Args:
        folder: For everything; removed at the end.

    Raises:
        subprocess.CalledProcessError: podman cannot make the image.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        conf = _CONF.format(files=1024, processes=1024)
        (folder / "containers.conf").write_text(conf)
        (folder / "storage.conf").write_text(_STORAGE.format(folder=folder))
        _make_root(folder / "root")
        archive = folder / "root.tar"
        subprocess.run(["tar", "-cf", archive, "-C", folder / "root", "."], check=True)
        self.podman("import", "--quiet", str(archive), IMAGE)
        archive.unlink()
        shutil.rmtree(folder / "root")

    @property
    def variables(self) -> Mapping[str, str]:
        """Return what makes podman use this lab."""
        return {
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
        }

    def podman(self, *words: str) -> str:
        """Run podman; return what it prints."""
        done = subprocess.run(
            ["podman", *words], env={**os.environ, **self.variables}, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=False, timeout=120,
        )  # fmt: skip
        if done.returncode != 0:
            raise subprocess.CalledProcessError(done.returncode, ["podman", *words], done.stdout, done.stderr)
        return done.stdout

    def containers(self) -> list[str]:
        """Return the names of all containers, those that have ended too."""
        return self.podman("ps", "--all", "--format", "{{.Names}}").split()

    def close(self) -> None:
        """Remove everything."""
        self.podman("system", "reset", "--force")
        _remove_empty_groups()
        shutil.rmtree(self.folder, ignore_errors=True)


def _remove_empty_groups() -> None:
    """Remove the control groups that podman leaves of containers that were killed."""
    for parent in Path("/sys/fs/cgroup").glob("*/libpod_parent"):
        inside = [path for path in parent.rglob("*") if path.is_dir()]
        for group in sorted([parent, *inside], reverse=True):
            with contextlib.suppress(OSError):  # a container runs in it
                group.rmdir()


def runs(lab: ContainerLab) -> str:
    """Why no container runs on this machine; "" when one does."""
    try:
        lab.podman("run", "--rm", "--network=host", IMAGE, "python3", "-c", "print(1)")
    except subprocess.CalledProcessError as error:
        return f"podman runs no container here: {error.stderr.strip()[-300:]}"
    return ""


def _make_root(root: Path) -> None:
    """Make a root file system of the machine's Python, a shell, and their libraries."""
    version, library = json.loads(subprocess.run([_PYTHON, "-c", _FIND], capture_output=True, check=True).stdout)
    program = Path(f"/usr/bin/python{version[0]}.{version[1]}")
    modules = sorted(str(path) for path in Path(library).glob("lib-dynload/*.so"))
    for path in (str(program), *_PROGRAMS, *_libraries([str(program), *_PROGRAMS, *modules])):
        _copy(path, root)
    shutil.copytree(
        library, root / library[1:], ignore=shutil.ignore_patterns(*_LEFT_OUT), ignore_dangling_symlinks=True
    )
    (root / "usr/bin/python3").symlink_to(program.name)
    for name in _FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)


def _libraries(programs: list[str]) -> list[str]:
    printed = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=True).stdout
    return sorted(set(re.findall(r"(?:=> |^\t)(/\S+)", printed, re.MULTILINE)))


def _copy(path: str, root: Path) -> None:
    target = root / path[1:]
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, target)

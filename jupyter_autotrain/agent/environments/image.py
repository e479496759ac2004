"""Trials in containers, by podman or docker: the command line, and the end of a container.

A container has the trial directory, the bundle and this package at the paths that they have outside, the host's network
and its shared memory; GPUs are those of the trial. Its first process (`container_main`) ends when the program that
started it does, and with it everything in the container.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence

from jupyter_autotrain.agent import fields, wire
from jupyter_autotrain.agent.environments.prepared import NotPreparedError

RUNTIMES = ("podman", "docker")
# Variables that describe the machine around the container, not the trial.
_OF_THE_MACHINE = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TEMP", "TMP", "XDG_*", "VIRTUAL_ENV", "CONDA_*",
    "MAMBA_*", "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONEXECUTABLE", "LD_*", "CUDA_HOME", "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES", "SSL_CERT_*", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "JUPYTER_DATA_DIR",
    "JUPYTER_CONFIG_DIR", "JUPYTER_AUTOTRAIN_HOME",
)  # fmt: skip
_REMOVE_S = 30.0
# Descriptors of the worker's stdout and stderr in a container of podman, whose monitor would lose the end of both when
# it is stopped before the worker.
OUTPUT_FDS = (3, 4)


def find_runtime(environ: Mapping[str, str]) -> str:
    """Return the program that runs containers: podman, else docker.

    Raises:
        NotPreparedError: There is none.
    """
    for name in RUNTIMES:
        found = shutil.which(name, path=environ.get("PATH"))
        if found is not None:
            return found
    raise NotPreparedError(
        "There is neither podman nor docker here. One of them was expected, to run the trial's image. "
        "Install podman, or use `environment: {python: ...}` or `match`."
    )


def container_name(directory: str, rank: int) -> str:
    """Return the name of a worker's container."""
    return f"autotrain-{hashlib.sha256(directory.encode()).hexdigest()[:16]}-{rank}"


def command(
    trial: Mapping[str, object], image: str, runtime: str, program: Sequence[str], environ: Mapping[str, str], rank: int
) -> list[str]:
    """Return the command that runs a program of this package in a container of an image. Pure but for `os.getuid`.

    Args:
        trial: `TrialSpec` as JSON, with its paths.
        image: The image's name.
        runtime: The path of podman or docker.
        program: A script and its arguments, for the image's python3.
        environ: The trial's variables; on the command line only their names appear.
        rank: The worker's rank on this node.
    """
    directory = str(trial["directory"])
    is_podman = os.path.basename(runtime) == "podman"
    argv = [
        runtime, "run", "--rm", "--interactive", "--name", container_name(directory, rank), "--network=host",
        "--ipc=host", "--security-opt=label=disable", f"--workdir={directory}", "--entrypoint=python3",
    ]  # fmt: skip
    argv += ["--sig-proxy=false", f"--preserve-fds={len(OUTPUT_FDS)}"] if is_podman else []
    argv += _user(is_podman, os.getuid(), os.getgid())
    argv += _limits(fields.mapping(trial.get("resources")))
    argv += _gpus(fields.strings(trial.get("gpus")), is_podman)
    argv += [f"--mount=type=bind,src={path},dst={path}{mode}" for path, mode in _mounts(trial)]
    argv += [f"--env={name}" for name in sorted(environ) if not _is_of_the_machine(name)]
    return [*argv, image, "-B", *program]


def _user(is_podman: bool, uid: int, gid: int) -> list[str]:
    """Return the options that keep the user inside the same as outside, so that a trial's files belong to its user."""
    if uid == 0:
        return []
    home = "--env=HOME=/tmp"
    return ["--userns=keep-id", home] if is_podman else [f"--user={uid}:{gid}", home]


def _limits(resources: Mapping[str, object]) -> list[str]:
    memory = resources.get("memory_bytes")
    cpus = resources.get("cpus")
    argv = [f"--memory={int(memory)}b"] if isinstance(memory, (int, float)) else []
    return argv + ([f"--cpus={cpus:g}"] if isinstance(cpus, (int, float)) else [])


def _gpus(ids: Sequence[str], is_podman: bool) -> list[str]:
    """Return the options for exactly the trial's GPUs: by CDI with podman; docker takes them in one argument."""
    if not ids:
        return []
    if is_podman:
        return [f"--device=nvidia.com/gpu={one}" for one in ids]
    return [f'--gpus="device={",".join(ids)}"']


def _mounts(trial: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield each path that the trial needs, and how it is mounted."""
    yield str(trial["directory"]), ""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for path in (package, str(trial.get("bundle") or ""), str(trial.get("resume_from") or "")):
        if path and os.path.exists(path):
            yield path, ",readonly"
    yield from _data_mounts(trial)


def _data_mounts(trial: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    folder = str(trial.get("data_folder") or "")
    if folder and os.path.isdir(folder):
        yield folder, ""
    data = trial.get("data")
    for source in data if isinstance(data, list) else []:
        path = os.path.expanduser(str(fields.mapping(source).get("path") or ""))
        if os.path.exists(path) and not path.startswith(f"{folder}/"):
            yield path, ",readonly"


def _is_of_the_machine(name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in _OF_THE_MACHINE)


def remove(trial: Mapping[str, object], environ: Mapping[str, str], workers: int) -> None:
    """Remove the containers that are left of a trial; do nothing where they have ended by themselves."""
    directory = str(trial["directory"])
    names = [container_name(directory, rank) for rank in range(workers)]
    with contextlib.suppress(OSError, subprocess.SubprocessError, NotPreparedError):
        subprocess.run(
            [find_runtime(environ), "rm", "--force", *names], env=dict(environ), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=_REMOVE_S,
        )  # fmt: skip


def outcome_file(directory: str, rank: int) -> str:
    """Return the path of the outcome of a worker in a container: a descriptor does not reach into a container."""
    return f"{directory}/{wire.CONTROL}/outcome-{rank}"

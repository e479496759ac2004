"""Virtual environments: each made once at a place, by uv or pip, under the digest of what it is made of.

`ROOT/DIGEST/` is one; its file `complete.json` is written last. A folder without that file is half-made: nobody uses
it, and who makes the next one removes it. `ROOT/DIGEST.lock` is locked by the process that makes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from jupyter_autotrain.core import disk, wire
from jupyter_autotrain.worker.environments import eviction, installer
from jupyter_autotrain.worker.environments.prepared import NotPreparedError, Prepared

COMPLETE = eviction.COMPLETE
_TRIES = 3  # it may be removed just between its making and its use
_DIGEST_CHARACTERS = 20
_ASK_S = 60.0
_DESCRIBE = (
    "import json, platform, sys, sysconfig; print(json.dumps([platform.python_version(), sysconfig.get_platform(), "
    "sys.implementation.name, sys._base_executable]))"
)


def make(
    root: str, python: str, requirements: Sequence[str], environ: Mapping[str, str], say: Callable[[str], object]
) -> Prepared:
    """The virtual environment with these requirements, made unless it is there; it stays while this process lives.

    Args:
        root: The folder of all virtual environments at this place.
        python: The interpreter it is made from.
        requirements: Lines of a requirements file.
        environ: The trial's variables, such as PIP_INDEX_URL.
        say: Told what is done, line by line.

    Raises:
        NotPreparedError: It could not be made; nothing of it is left.
    """
    folder = os.path.join(root, _digest(_describe(python), requirements))
    try:
        for _ in range(_TRIES):
            if eviction.hold(folder):
                break
            os.makedirs(root, mode=0o700, exist_ok=True)
            _make_once(folder, python, requirements, environ, say)
        else:
            raise NotPreparedError(f"The Python environment {folder} is removed as often as it is made.")
    except OSError as error:
        raise NotPreparedError(_explain(error, root)) from error
    return Prepared(os.path.join(folder, "bin", "python"), {"VIRTUAL_ENV": folder}, os.path.join(folder, "bin"))


def is_complete(folder: str) -> bool:
    """True when a virtual environment may be used."""
    return os.path.exists(os.path.join(folder, COMPLETE))


def _describe(python: str) -> list[str]:
    """Version, platform, implementation and base of an interpreter."""
    try:
        done = subprocess.run(
            [python, "-I", "-S", "-c", _DESCRIBE], stdin=subprocess.DEVNULL, capture_output=True, check=True,
            timeout=_ASK_S,
        )  # fmt: skip
        return [str(part) for part in json.loads(done.stdout)]
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise NotPreparedError(
            f"The interpreter {python} does not work: {error}. A Python of at least 3.9 was expected, to make the "
            "virtual environment from. Correct `python` in the profile."
        ) from error


def _digest(interpreter: Sequence[str], requirements: Sequence[str]) -> str:
    content = json.dumps([list(interpreter), sorted(requirements)]).encode()
    return hashlib.sha256(content).hexdigest()[:_DIGEST_CHARACTERS]


def _make_once(
    folder: str, python: str, requirements: Sequence[str], environ: Mapping[str, str], say: Callable[[str], object]
) -> None:
    began_ns = time.time_ns()
    with _locked(f"{folder}.lock", say):
        if is_complete(folder):
            return
        _refuse_again(f"{folder}.failed", began_ns)
        _remove_half_made(os.path.dirname(folder))
        eviction.make_room(os.path.dirname(folder))
        try:
            _make(folder, python, requirements, environ, say)
        except NotPreparedError as error:
            with contextlib.suppress(OSError):  # the disk may be full
                wire.write_atomically(f"{folder}.failed", str(error).encode(), sync=False)
            raise
        finally:
            if not is_complete(folder):
                shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.unlink(f"{folder}.failed")


@contextlib.contextmanager
def _locked(path: str, say: Callable[[str], object]) -> Iterator[None]:
    """Hold a lock; its holder's death frees it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another trial makes the Python environment; waiting for it.")
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _refuse_again(path: str, began_ns: int) -> None:
    """Trials that waited while another one failed to make it do not all fail again, one after the other."""
    with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
        if os.fstat(file.fileno()).st_mtime_ns > began_ns:
            raise NotPreparedError(file.read())


def _remove_half_made(root: str) -> None:
    """Remove what a killed maker has left."""
    for name in os.listdir(root):
        folder = os.path.join(root, name)
        if not os.path.isdir(folder) or is_complete(folder):
            continue
        with contextlib.suppress(OSError):
            fd = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while somebody makes it
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(fd)


def _make(
    folder: str, python: str, requirements: Sequence[str], environ: Mapping[str, str], say: Callable[[str], object]
) -> None:
    begin_s = time.monotonic()
    say(f"Making the Python environment {folder} of {len(requirements)} requirements ...")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder, mode=0o700)
    path = os.path.join(folder, "requirements.txt")
    wire.write_atomically(path, "".join(f"{line}\n" for line in requirements).encode(), sync=False)
    installer.install(folder, python, path, environ, say)
    content = {"python": python, "requirements": list(requirements), "took_s": round(time.monotonic() - begin_s, 3)}
    wire.write_atomically(os.path.join(folder, COMPLETE), json.dumps(content).encode())
    say(f"The Python environment is made: {content['took_s']} s.")


def _explain(error: OSError, root: str) -> str:
    if disk.is_full(error):
        return f"The Python environment cannot be made: {disk.full(root)}. Free some of it, then `%autotrain retry`."
    return (
        f"The Python environment cannot be made: {error.strerror} ({error.filename or root}). A folder that can be "
        f"written was expected: {root}. Look at its rights."
    )

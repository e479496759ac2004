"""Virtual environments: each made once at a place, by uv or pip, under the digest of what it is made of.

`ROOT/DIGEST/` is one; its file `complete.json` is written last. A folder without that file is half-made: nobody uses
it, and who makes the next one removes it. `ROOT/DIGEST.lock` is locked by the process that makes it.

An environment is filled by uv where it is installed, else by pip. Everything is byte-compiled.
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
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.environments import eviction
from jupyter_autotrain.agent.environments.prepared import NotPreparedError, Prepared, last_lines
from jupyter_autotrain.agent.system import disk

COMPLETE = eviction.COMPLETE
_TRIES = 3  # it may be removed just between its making and its use
_DIGEST_CHARACTERS = 20
_ASK_S = 60.0
_DESCRIBE = (
    "import json, platform, sys, sysconfig; print(json.dumps([platform.python_version(), sysconfig.get_platform(), "
    "sys.implementation.name, sys._base_executable]))"
)
_NOT_FOR_IT = frozenset({"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER"})
_UV_NAMES = {
    "PIP_FIND_LINKS": "UV_FIND_LINKS", "PIP_INDEX_URL": "UV_DEFAULT_INDEX",
    "PIP_EXTRA_INDEX_URL": "UV_INDEX", "PIP_CERT": "SSL_CERT_FILE",
}  # fmt: skip
_TRUE = ("1", "true", "yes", "on")
_KEPT_LINES = 40
_PIP_FOR_OTHERS = (22, 3)  # from then on it installs for another interpreter
_VERSION_S = 60.0


def make(
    root: str, python: str, requirements: Sequence[str], environ: Mapping[str, str], say: Callable[[str], object]
) -> Prepared:
    """Return the virtual environment with these requirements, made unless it is there.

    It stays while this process lives.

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
    """Tell whether a virtual environment may be used."""
    return os.path.exists(os.path.join(folder, COMPLETE))


def _describe(python: str) -> list[str]:
    """Return the version, platform, implementation and base of an interpreter."""
    try:
        done = subprocess.run(
            [python, "-I", "-S", "-c", _DESCRIBE], stdin=subprocess.DEVNULL, capture_output=True, check=True,
            timeout=_ASK_S,
        )  # fmt: skip
        return list(map(str, json.loads(done.stdout)))
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
    """Hold a lock; the death of its holder frees it."""
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
    """Raise the error of a trial that has failed to make the environment meanwhile, if there is one.

    So trials that waited for it do not all fail again, one after the other.
    """
    with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
        if os.fstat(file.fileno()).st_mtime_ns > began_ns:
            raise NotPreparedError(file.read())


def _remove_half_made(root: str) -> None:
    """Remove the half-made environments that killed makers have left."""
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
    install(folder, python, path, environ, say)
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


def install(
    folder: str, python: str, requirements: str, environ: Mapping[str, str], say: Callable[[str], object]
) -> None:
    """Make a virtual environment in a folder, and install a requirements file into it.

    Args:
        folder: The folder; there is nothing of an environment in it.
        python: The interpreter to make it from.
        requirements: The path of the file.
        environ: Variables; those of pip hold for uv as well.
        say: Gets what the programs print.

    Raises:
        NotPreparedError: With the last lines of the program that failed.
    """
    env = {name: value for name, value in environ.items() if name not in _NOT_FOR_IT}
    inside = os.path.join(folder, "bin", "python")
    uv = shutil.which("uv", path=environ.get("PATH"))
    if uv is not None:
        env = {**_for_uv(env), "VIRTUAL_ENV": folder}
        _run([uv, "venv", "--quiet", "--allow-existing", "--python", python, folder], env, say, folder)
        arguments = ["--python", inside, "--compile-bytecode", "--requirement", requirements]
        arguments += ["--no-index"] if env.get("PIP_NO_INDEX", "").lower() in _TRUE else []
        _run([uv, "pip", "install", *arguments], env, say, folder)
        return
    arguments = ["--no-input", "--disable-pip-version-check", "--compile", "--requirement", requirements]
    if _pip_version(python, env) >= _PIP_FOR_OTHERS:  # spares 3 s, and the part of Python that some systems leave out
        _run([python, "-m", "venv", "--without-pip", folder], env, say, folder)
        _run([python, "-m", "pip", "--python", inside, "install", *arguments], env, say, folder)
        return
    _run([python, "-m", "venv", folder], env, say, folder)
    _run([inside, "-m", "pip", "install", *arguments], env, say, folder)


def _pip_version(python: str, env: Mapping[str, str]) -> tuple[int, ...]:
    """Return the version of an interpreter's pip; (0,) where it has none."""
    try:
        done = subprocess.run(
            [python, "-m", "pip", "--version"], env=dict(env), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=True, timeout=_VERSION_S,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return (0,)
    words = done.stdout.split()
    numbers = words[1].split(".")[:2] if len(words) > 1 else []
    return tuple(int(number) for number in numbers if number.isdigit()) or (0,)


def _for_uv(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with those that set up pip set for uv as well."""
    own = {theirs: env[ours] for ours, theirs in _UV_NAMES.items() if ours in env and theirs not in env}
    return {**env, **own}


def _run(argv: Sequence[str], env: Mapping[str, str], say: Callable[[str], object], folder: str) -> None:
    """Run a program to its end, and pass on its output line by line."""
    lines = deque[str](maxlen=_KEPT_LINES)
    try:
        with subprocess.Popen(
            argv, env=dict(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace",
        ) as program:  # fmt: skip
            assert program.stdout is not None
            for line in program.stdout:
                lines.append(line)
                with contextlib.suppress(OSError):  # the trial's disk is full; this one's may not be
                    say(line.rstrip("\n"))
    except OSError as error:
        raise NotPreparedError(
            f"{argv[0]} cannot be run: {error.strerror}. Correct `python` in the profile."
        ) from error
    if program.returncode != 0:
        raise NotPreparedError(_reason(argv, program.returncode, list(lines), folder))


def _reason(argv: Sequence[str], code: int, lines: Sequence[str], folder: str) -> str:
    text = "".join(lines)
    if "No space left on device" in text or disk.is_nearly_full(folder):
        return f"The Python environment cannot be made: {disk.full(folder)}. Free some of it, then `%autotrain retry`."
    if "ensurepip is not" in text or "No module named venv" in text:
        return (
            f"The Python environment cannot be made: {argv[0]} lacks its module venv. Python with venv and pip, or "
            "uv, was expected there. Install the package python3-venv, or uv, or write `environment: {python: ...}`."
        )
    told = last_lines(_errors(lines))
    return (
        f"The Python environment cannot be made: {_name(argv)} ended with exit code {code}: {told}. "
        "All requirements were expected to be found. Set where from under `env:` (PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, "
        "PIP_FIND_LINKS), or name other versions with `environment: {requirements: FILE}`."
    )


def _errors(lines: Sequence[str]) -> Sequence[str]:
    """Return the printed lines from the first one that is called an error; all lines where none is."""
    first = next((number for number, line in enumerate(lines) if line.lower().startswith("error")), 0)
    return lines[first:]


def _name(argv: Sequence[str]) -> str:
    if argv[1] == "-m":
        return "pip install" if argv[2] == "pip" else f"python -m {argv[2]}"
    return " ".join([os.path.basename(argv[0]), *argv[1:3]])

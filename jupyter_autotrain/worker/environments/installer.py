"""Filling a virtual environment: by uv where it is installed, else by pip. Everything is byte-compiled."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from jupyter_autotrain.core import disk
from jupyter_autotrain.worker.environments.prepared import NotPreparedError, last_lines

_NOT_FOR_IT = frozenset({"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER"})
_UV_NAMES = {
    "PIP_FIND_LINKS": "UV_FIND_LINKS", "PIP_INDEX_URL": "UV_DEFAULT_INDEX",
    "PIP_EXTRA_INDEX_URL": "UV_INDEX", "PIP_CERT": "SSL_CERT_FILE",
}  # fmt: skip
_TRUE = ("1", "true", "yes", "on")
_KEPT_LINES = 40
_PIP_FOR_OTHERS = (22, 3)  # from then on it installs for another interpreter
_ASK_S = 60.0


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
    """The version of the pip that an interpreter has; (0,) without one."""
    try:
        done = subprocess.run(
            [python, "-m", "pip", "--version"], env=dict(env), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=True, timeout=_ASK_S,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return (0,)
    words = done.stdout.split()
    numbers = words[1].split(".")[:2] if len(words) > 1 else []
    return tuple(int(number) for number in numbers if number.isdigit()) or (0,)


def _for_uv(env: Mapping[str, str]) -> dict[str, str]:
    """Variables that set up pip set up uv as well."""
    own = {theirs: env[ours] for ours, theirs in _UV_NAMES.items() if ours in env and theirs not in env}
    return {**env, **own}


def _run(argv: Sequence[str], env: Mapping[str, str], say: Callable[[str], object], folder: str) -> None:
    """Run a program to its end; what it prints is passed on."""
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
    """What was printed from the first line on that is called an error; all where none is."""
    first = next((number for number, line in enumerate(lines) if line.lower().startswith("error")), 0)
    return lines[first:]


def _name(argv: Sequence[str]) -> str:
    if argv[1] == "-m":
        return "pip install" if argv[2] == "pip" else f"python -m {argv[2]}"
    return " ".join([os.path.basename(argv[0]), *argv[1:3]])

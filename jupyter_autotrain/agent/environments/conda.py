"""Environments of conda: found by their files, so that conda itself is not needed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping

from jupyter_autotrain.agent.environments.prepared import NotPreparedError, Prepared

_BASE = "base"
_USUAL = (
    "~/miniforge3", "~/miniconda3", "~/mambaforge", "~/anaconda3", "~/micromamba", "~/.conda",
    "/opt/conda", "/opt/miniforge3", "/opt/miniconda3", "/opt/anaconda3",
)  # fmt: skip
_ACTIVATE = 'for file in "$CONDA_PREFIX"/etc/conda/activate.d/*.sh; do . "$file" >&2; done; exec env -0'
_ACTIVATE_S = 60.0


def find(value: str, environ: Mapping[str, str]) -> Prepared:
    """Return the environment with this name, or in this folder, as `conda run` would run it.

    Its scripts in `etc/conda/activate.d` are run where there is bash.

    Args:
        value: A name, or a folder.
        environ: The trial's variables.

    Raises:
        NotPreparedError: There is none, or it has no Python.
    """
    prefix = _prefix(value, environ)
    python = os.path.join(prefix, "bin", "python")
    if not os.access(python, os.X_OK):
        raise NotPreparedError(
            f"The conda environment {prefix} has no Python. A Python of at least 3.9 was expected in it. "
            f"Install one: `conda install -p {prefix} python`."
        )
    variables = {
        **_own_variables(prefix), "CONDA_PREFIX": prefix, "CONDA_DEFAULT_ENV": _name(prefix), "CONDA_SHLVL": "1",
    }  # fmt: skip
    prepared = Prepared(python, variables, os.path.join(prefix, "bin"))
    return Prepared(python, _activated(prefix, prepared.environ(environ), variables), prepared.folder)


def interpreter(value: str, environ: Mapping[str, str]) -> str:
    """Return the environment's Python, without activating it; errors as `find`."""
    return os.path.join(_prefix(value, environ), "bin", "python")


def _prefix(value: str, environ: Mapping[str, str]) -> str:
    if "/" in value or value.startswith("~"):
        folder = os.path.abspath(os.path.expanduser(value))
        if not os.path.isdir(os.path.join(folder, "conda-meta")):
            raise NotPreparedError(
                f"{folder} is not a conda environment. A folder with conda-meta in it was expected. "
                "Look for yours: `conda env list`."
            )
        return folder
    known = dict(_known(environ))
    if value not in known:
        raise NotPreparedError(
            f"There is no conda environment {value!r} here. Those found: {', '.join(sorted(known)) or 'none'}. "
            "Create it, or give its folder: `environment: {conda: /path/of/it}`."
        )
    return known[value]


def _known(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the name and folder of each environment, the least telling places first."""
    for prefix in _listed():
        yield os.path.basename(prefix), prefix
    for root in reversed(list(_roots(environ))):
        envs = os.path.join(root, "envs")
        for name in sorted(os.listdir(envs)) if os.path.isdir(envs) else []:
            if os.path.isdir(os.path.join(envs, name, "conda-meta")):
                yield name, os.path.join(envs, name)
        if os.path.isdir(os.path.join(root, "conda-meta")):
            yield _BASE, root


def _roots(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the folders where conda may be installed, the most telling first."""
    for name in ("MAMBA_ROOT_PREFIX", "CONDA_ROOT"):
        if environ.get(name):
            yield environ[name]
    program = environ.get("CONDA_EXE") or shutil.which("conda", path=environ.get("PATH"))
    if program:
        yield os.path.dirname(os.path.dirname(os.path.realpath(program)))
    for place in _USUAL:
        yield os.path.expanduser(place)


def _listed() -> list[str]:
    """Return the environments of this account that conda itself has written down."""
    try:
        with open(os.path.expanduser("~/.conda/environments.txt"), encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except OSError:
        return []
    return [line for line in lines if os.path.isdir(os.path.join(line, "conda-meta"))]


def _name(prefix: str) -> str:
    """Return the name as conda shows it."""
    if os.path.isdir(os.path.join(prefix, "condabin")):
        return _BASE
    is_named = os.path.basename(os.path.dirname(prefix)) == "envs"
    return os.path.basename(prefix) if is_named else prefix


def _own_variables(prefix: str) -> dict[str, str]:
    """Return the variables that `conda env config vars set` has set."""
    try:
        with open(os.path.join(prefix, "conda-meta", "state"), encoding="utf-8") as file:
            found = json.load(file).get("env_vars", {})
    except (OSError, ValueError, AttributeError):
        return {}
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def _activated(prefix: str, environ: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables, with those that the environment's own scripts set."""
    bash = shutil.which("bash", path=environ.get("PATH"))
    scripts = os.path.join(prefix, "etc", "conda", "activate.d")
    if bash is None or not os.path.isdir(scripts) or not os.listdir(scripts):
        return dict(variables)
    try:
        done = subprocess.run(
            [bash, "-c", _ACTIVATE], env=dict(environ), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True,
            timeout=_ACTIVATE_S,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise NotPreparedError(
            f"The scripts in {scripts} fail: {error}. They were expected to set variables. Try `conda activate` there."
        ) from error
    changed = {}
    for entry in done.stdout.decode(errors="surrogateescape").split("\0"):
        name, is_variable, value = entry.partition("=")
        if is_variable and environ.get(name) != value and name not in {"_", "SHLVL", "PWD", "OLDPWD"}:
            changed[name] = value
    return {**variables, **changed}

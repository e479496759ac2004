"""Trust in project files: whose they are, and whether their reader has agreed to what they can do.

A project's `autotrain.yaml` comes with a folder: cloned, shared, or planted. It counts only when nobody else can have
written it. What it says of places, of code, data and secrets counts only once its reader has agreed to the file as it
is, by `backends trust-project`; the model is direnv's.
"""

from __future__ import annotations

import grp
import hashlib
import json
import os
import pwd
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from jupyter_autotrain.agent import wire
from jupyter_autotrain.header import settings_files
from jupyter_autotrain.header.document import LIMIT_BYTES

RECORD_FILE: Final = "autotrain_trusted_projects.json"
VARIABLE: Final = "JUPYTER_AUTOTRAIN_TRUSTED_PROJECTS"
"""Digests of trusted project files, separated by commas, for scripts in which nobody can be asked."""
COMMAND: Final = "%autotrain backends trust-project"
BUILT_IN: Final = ("local", "debug")
"""Places that a project's file can never define anew."""

FREE_KEYS: Final = frozenset(
    {
        "name", "objective", "constraints", "search", "early_stop", "trials", "concurrency", "resources",
        "launcher", "elastic", "timeout", "stall", "post_mortem", "budget", "seed", "autolog", "returns", "fetch_limit",
        "retries", "notify", "priority", "weight",
    }
)  # fmt: skip
"""Keys that a project's file may set at once: they shape a search and neither run, reach, reveal nor end anything."""
TRUSTED_KEYS: Final = frozenset(
    {
        "backend", "clients", "federated", "mode", "env", "environment", "pass_env", "secrets", "not_secrets", "ship",
        "data", "hooks", "parallel", "on_rerun", "setup", "start_from", "track", "tuner",
    }
)  # fmt: skip
"""Keys that count after trust alone, as do all sections of backends and all profiles with every option of theirs.

What `parallel` has are expressions, which are evaluated in the notebook; `tuner` may name code to be fetched.
"""
_DIGEST_CHARACTERS = 32


def ownership_fault(path: Path) -> str:
    """Return why somebody else can have written a file; "" where only the user and root can.

    The file and its folder belong to the user or root, and nobody else may write them; a folder above may be open to
    all where it is sticky, as `/tmp` is. The file as it is named counts, and where a link leads.
    """
    for named in dict.fromkeys((path, path.resolve())):
        try:
            faults = [_writable_by_others(named), _writable_by_others(named.parent)]
            faults += [_writable_by_others(folder, may_be_sticky=True) for folder in named.parent.parents]
        except OSError as error:
            return f"{named} cannot be examined ({error.strerror})"
        if found := next(filter(None, faults), ""):
            return found
    return ""


def _writable_by_others(path: Path, *, may_be_sticky: bool = False) -> str:
    state = path.stat()
    if state.st_uid not in {0, os.getuid()}:
        return f"{path} belongs to {_user(state.st_uid)}"
    if may_be_sticky and state.st_mode & stat.S_ISVTX:
        return ""
    if state.st_mode & stat.S_IWOTH:
        return f"{path} can be written by everybody"
    if state.st_mode & stat.S_IWGRP and not _is_private(state.st_gid):
        return f"{path} can be written by its group"
    return ""


def _is_private(group: int) -> bool:
    """Return whether a group is the user's own, or root's: on many systems each user has one."""
    try:
        entry = grp.getgrgid(group)
        user = pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    is_own = group == user.pw_gid and entry.gr_name == user.pw_name
    return (group == 0 or is_own) and not set(entry.gr_mem) - {user.pw_name, "root"}


def _user(number: int) -> str:
    try:
        return f"user {pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"user {number}"


def digest(path: Path, settings: Mapping[str, object]) -> str:
    """Return the digest of a project file: of its path and text, and of each file of the project that it names.

    Raises:
        OSError: A file cannot be read, or is too long.
    """
    if path.stat().st_size > LIMIT_BYTES:
        raise OSError(None, f"it has more than {LIMIT_BYTES} bytes")
    sums = hashlib.sha256()
    for file in (path.resolve(), *settings_files.of_settings(path, settings)):
        sums.update(hashlib.sha256(os.fsencode(file)).digest() + settings_files.digest_of(file))
    return sums.hexdigest()[:_DIGEST_CHARACTERS]


def is_trusted(path: Path, settings: Mapping[str, object], folder: Path | None, environ: Mapping[str, str]) -> bool:
    """Return whether the user has agreed to a project file as it is now.

    Args:
        path: The file.
        settings: What stands in it.
        folder: The user's folder of Jupyter's configuration, where the agreement is kept.
        environ: The variables.
    """
    try:
        found = digest(path, settings)
    except OSError:
        return False
    given = {word.strip() for word in environ.get(VARIABLE, "").split(",")}
    return found in given or _record(folder).get(str(path.resolve())) == found


def trust(path: Path, found: str, folder: Path) -> Path:
    """Keep that the user agrees to a file with this digest; gives the record's path.

    Raises:
        OSError: The record cannot be written.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    record = folder / RECORD_FILE
    kept = {**_record(folder), str(path.resolve()): found}
    wire.write_atomically(str(record), json.dumps(kept, indent=1, sort_keys=True).encode())
    return record


def _record(folder: Path | None) -> dict[str, str]:
    """Return the kept digests by path; none where the record is absent, broken or not the user's alone."""
    if folder is None:
        return {}
    record = folder / RECORD_FILE
    try:
        if ownership_fault(record):
            return {}
        found = json.loads(record.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}

"""Changes of the user's own file of profiles: prepared and checked as text, then saved; comments stay."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.errors import AutotrainError, BackendError
from jupyter_autotrain.header import HeaderContext, profile_editing
from jupyter_autotrain.header.document import Fault, combined_error
from jupyter_autotrain.header.profiles import USER_FILE, Definition, Profiles, defined_in
from jupyter_autotrain.header.yaml_reader import load


@dataclass(frozen=True, slots=True)
class ProfileChange:
    """A change of the user's file that is not made yet.

    Attributes:
        file: The file.
        before: Its text as it is.
        text: Its text as it would be.
        faults: What would be wrong with it; one with faults cannot be saved.
    """

    file: Path
    before: str
    text: str
    faults: tuple[Fault, ...] = ()

    def save(self) -> None:
        """Replace the file by one of mode 0600.

        Raises:
            HeaderError: It has faults.
            BackendError: The file was changed meanwhile, or cannot be written.
        """
        if self.faults:
            raise combined_error(self.faults)
        target = self.file.resolve()  # it may be a link into a repository of settings
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _locked(target.parent):
                if _text(self.file) != self.before:
                    raise BackendError(
                        f"{self.file.name} was changed meanwhile.",
                        "The file as it was read.",
                        "Load it, and try again.",
                    )
                wire.write_atomically(str(target), self.text.encode())
        except OSError as error:
            raise BackendError(
                f"{self.file} cannot be written: {error.strerror}.", "A file of your own.", "Check its folder."
            ) from None


def added(context: HeaderContext, name: str, settings: Mapping[str, JsonValue]) -> ProfileChange:
    """Return a new profile.

    Raises:
        AutotrainError: The name is taken, or the user's file of profiles is faulty.
    """
    profiles, _ = context.profiles()
    file = _user_file(context)
    if file.exists() and (faults := context.read(file).faults):
        raise combined_error(faults)
    if known := profiles.definitions.get(name):
        raise AutotrainError(
            f"There is a profile {name!r} already ({known.location}).",
            "A name that is not taken.",
            f"Change it: %autotrain backends edit {name} ...; or remove it: %autotrain backends remove {name}",
        )
    before = _text(file)
    return _checked(context, profiles, file, (before, profile_editing.added(before, name, settings)), name)


def changed(
    context: HeaderContext, name: str, settings: Mapping[str, JsonValue], unset: Collection[str] = ()
) -> ProfileChange:
    """Other settings of a profile.

    Raises:
        AutotrainError: It is none of the user's own.
    """
    profiles, _ = context.profiles()
    file = own_definition(context, profiles, name).file
    before = _text(file)
    return _checked(context, profiles, file, (before, profile_editing.changed(before, name, settings, unset)), name)


def removed(context: HeaderContext, name: str) -> ProfileChange:
    """Return the file without a profile.

    Raises:
        AutotrainError: It is none of the user's own.
    """
    profiles, _ = context.profiles()
    file = own_definition(context, profiles, name).file
    before = _text(file)
    return ProfileChange(file, before, profile_editing.removed(before, name))


def own_definition(context: HeaderContext, profiles: Profiles, name: str) -> Definition:
    """Return a profile of the user's own file.

    Raises:
        AutotrainError: No file defines it, or one that others share.
    """
    definition = profiles.definitions.get(name)
    if definition is None:
        _, faults = profiles.find(name)
        if faults:
            raise combined_error(faults)
        raise AutotrainError(
            f"{name!r} is a type of backend, and no file defines it.",
            f"A profile; yours: {', '.join(profiles.definitions) or 'none'}.",
            f"Make one of that name: %autotrain backends add {name} --type {name} ...",
        )
    if definition.file != context.user_file(USER_FILE):
        raise AutotrainError(
            f"The profile {name!r} is in a file shared with others ({definition.location}).",
            f"A profile of your own {USER_FILE}.",
            "Change it there by hand.",
        )
    return definition


def _user_file(context: HeaderContext) -> Path:
    folder = context.config_folder()
    if folder is None:
        raise AutotrainError(
            "There is no home folder for your profiles.", "HOME or JUPYTER_CONFIG_DIR in the environment.", "Set it."
        )
    return folder / USER_FILE


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""


def _checked(
    context: HeaderContext, profiles: Profiles, file: Path, texts: tuple[str, str], name: str
) -> ProfileChange:
    """Return the change from one text to another, with what would be wrong with the profile."""
    before, text = texts
    rows = list(enumerate(text.split("\n"), 1))
    document = load(rows, f"{context.shown(file)} as it would be", file.parent)
    defined: Mapping[str, Definition] = defined_in(document, (), file)
    _, faults = Profiles(profiles.types, profiles.models, defined, context.cwd).find(name)
    return ProfileChange(file, before, text, (*document.faults, *faults))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes that change a file of this folder out."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)

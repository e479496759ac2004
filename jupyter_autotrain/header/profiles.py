"""Profiles: found by name (project file, user's file, then types by their own name), checked against their type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.header import project_trust, value_faults
from jupyter_autotrain.header.backend_models import inline_model, profile_model
from jupyter_autotrain.header.document import (
    Document,
    Fault,
    KeyPath,
    SourceLocation,
    UnfitError,
    dotted,
    expected_instead,
    resolve,
    shown,
)
from jupyter_autotrain.header.types import read_name
from jupyter_autotrain.header.value_faults import validated

if TYPE_CHECKING:
    from pydantic import BaseModel

USER_FILE: Final = "backends.yaml"
DEFINITIONS: Final = "backends"  # the key of a project file that holds profiles


@dataclass(frozen=True, slots=True)
class Definition:
    """A profile as a file defines it, not checked yet.

    Attributes:
        name: The profile's.
        settings: What stands under it; a mapping where it is right.
        path: Where that is in the document.
        document: The whole file.
        file: Its path.
        hides: The definition of the same name in a file that counts less.
        is_trusted: Whether it counts: the user's own do, those of a project once its file is trusted.
    """

    name: str
    settings: object
    path: KeyPath
    document: Document
    file: Path
    hides: Definition | None = None
    is_trusted: bool = True

    @property
    def location(self) -> SourceLocation:
        """Where it stands, for people."""
        return self.document.location(self.path)


def defined_in(document: Document, path: KeyPath, file: Path) -> dict[str, Definition]:
    """Return the profiles that a file defines, by name.

    Args:
        document: The file, read.
        path: The mapping of the profiles in it; one that is no mapping defines none.
        file: The file's path.
    """
    found: object = document.data
    for part in path:
        found = found.get(str(part)) if isinstance(found, dict) else None
    if not isinstance(found, dict):
        return {}
    return {name: Definition(name, settings, (*path, name), document, file) for name, settings in found.items()}


_LOGIN_OPTIONS = ("transport", "user", "port", "key_file", "config_file", "python")


@dataclass(frozen=True, slots=True)
class Profiles:
    """The profiles that a header can name.

    Attributes:
        types: Names of the types of backends; empty: any name is taken.
        models: The model of each type's options; a type that cannot be loaded has none.
        definitions: What files define, by name.
        folder: To which relative paths in a cell refer.
    """

    types: Sequence[str] = ()
    models: Mapping[str, type[BaseModel]] = field(default_factory=dict)
    definitions: Mapping[str, Definition] = field(default_factory=dict)
    folder: Path = field(default_factory=Path)

    def names(self) -> list[str]:
        """All names that `backend:` can take, in alphabetical order."""
        return sorted({*self.definitions, *(name for name in self.types if not self._needed(name))})

    def origins(self) -> dict[str, str]:
        """Where each of these names is defined: a file and its line, or `type`."""
        return {name: self._origin(name) for name in self.names()}

    def _origin(self, name: str) -> str:
        definition = self.definitions.get(name)
        return str(definition.location) if definition else "type"

    def _needed(self, type_name: str) -> list[str]:
        """Return the options without which a type is no backend."""
        model = self.models.get(type_name)
        return [key for key, option in model.model_fields.items() if option.is_required()] if model else []

    def find(self, name: str, location: SourceLocation = SourceLocation()) -> tuple[Profile | None, list[Fault]]:  # noqa: B008 - frozen
        """Return the profile of a name, or None and why.

        Args:
            name: Its name.
            location: Where it is named.
        """
        if definition := self.definitions.get(name):
            return self._defined(definition)
        if self.types and name not in self.types:
            return None, [Fault(f"unknown backend {shown(name)}", expected_instead(name, self.names()), "", location)]
        if needed := self._needed(name):
            options = ", ".join(f"{key}: ..." for key in needed)
            expected = f"expected its options: `backend: {{type: {name}, {options}}}`, or the name of a profile"
            action = f"see %autotrain help backend; `%autotrain backends add NAME --type {name}` makes a profile"
            return None, [Fault(f"{name} alone is a type of backend", expected, action, location)]
        return Profile(name, name), []

    def _defined(self, definition: Definition) -> tuple[Profile | None, list[Fault]]:
        name = definition.name
        settings = definition.settings
        path = definition.path
        document = definition.document
        if not definition.is_trusted:
            return None, [_not_trusted(definition)]
        try:
            read_name(name)
        except UnfitError as error:
            return None, [Fault(f"the profile {shown(name)}", error.expected, error.action, definition.location)]
        if not isinstance(settings, dict):
            expected = "expected a mapping such as {type: ssh, hosts: [gpu1]}"
            return None, [Fault(f"the profile {name}: {shown(settings)}", expected, "", definition.location)]
        type_name, faults = self._type(settings, document, path)
        if faults:
            return None, faults
        model = profile_model(type_name, self.models[type_name]) if type_name in self.models else None
        checked, faults = self._checked(settings, document, path, model)
        if faults:
            return None, faults
        price = getattr(checked, "price", None)
        options = self._options(type_name, settings, checked)
        return Profile(name, type_name, options, price.to_price() if price else None), []

    def inline(
        self, settings: Mapping[str, object], document: Document, path: KeyPath
    ) -> tuple[BackendChoice | None, list[Fault]]:
        """Return the choice that a mapping with a type stands for, or None and why.

        Args:
            settings: The mapping.
            document: The settings that it is a part of.
            path: Where in them.
        """
        type_name, faults = self._type(settings, document, path)
        if faults:
            return None, faults
        options = self.models.get(type_name)
        checked, faults = self._checked(settings, document, path, inline_model(type_name, options) if options else None)
        if faults:
            return None, faults
        name = getattr(checked, "name", None) or type_name
        profile = Profile(name, type_name, self._options(type_name, settings, checked))
        at_most = getattr(checked, "at_most", None)
        return BackendChoice(profile, at_most=at_most, prefer=getattr(checked, "prefer", 1.0)), []

    def _type(self, settings: Mapping[str, object], document: Document, path: KeyPath) -> tuple[str, list[Fault]]:
        """Return the name of a profile's type, or why it has none."""
        if "type" not in settings:
            expected = f"expected `type:` with one of {', '.join(self.types)}"
            return "", [Fault(f"{dotted(path)} has no type", expected, "add it", document.location(path))]
        name = str(settings["type"])
        if self.types and name not in self.types:
            location = document.location((*path, "type"))
            expected = expected_instead(name, self.types)
            return "", [Fault(f"{dotted(path)}: unknown type {shown(settings['type'])}", expected, "", location)]
        return name, []

    def _checked(
        self, settings: Mapping[str, object], document: Document, path: KeyPath, model: type[BaseModel] | None
    ) -> tuple[BaseModel | None, list[Fault]]:
        stray = dict(value_faults.in_profile(settings, document, path, getattr(model, "names_of_secrets", ())))
        plain = {key: value for key, value in settings.items() if (*path, key) not in stray}
        if model is None:
            return None, list(stray.values())
        folder = document.location(path).folder or self.folder
        checked, faults = validated(model, plain, document, path, folder)
        return checked, [*stray.values(), *faults]

    def _options(self, type_name: str, settings: Mapping[str, object], checked: BaseModel | None) -> JsonObject:
        if checked is None:
            return cast("JsonObject", {key: resolve(value) for key, value in settings.items() if key != "type"})
        names = set(self.models[type_name].model_fields)
        return self._with_login(checked.model_dump(mode="json", exclude_unset=True, include=names))

    def _with_login(self, options: JsonObject) -> JsonObject:
        """Where `via` names another profile with hosts: its first host, and how that is reached."""
        login = self._first_host(str(options.get("via")))
        if not login:
            return options
        known = {key: login[key] for key in _LOGIN_OPTIONS if login.get(key) is not None}
        return {**known, **options, "via": login["host"]}

    def _first_host(self, name: str) -> JsonObject:
        """Return the options by which the first host of a profile is reached; {} where it names no hosts."""
        definition = self.definitions.get(name)
        settings = definition.settings if definition is not None else None
        if not isinstance(settings, dict) or "hosts" not in settings:
            return {}
        profile, _ = self.find(name)
        hosts = profile.options.get("hosts") if profile is not None else None
        if profile is None or not isinstance(hosts, list) or not hosts:
            return {}
        own = hosts[0] if isinstance(hosts[0], dict) else {"host": hosts[0]}
        return {**profile.options, **own}


def _not_trusted(definition: Definition) -> Fault:
    return Fault(
        f"the profile {shown(definition.name)} is not trusted yet",
        "expected a file that you have looked at: it comes with the folder",
        f"see what it would do: {project_trust.COMMAND}",
        definition.location,
    )

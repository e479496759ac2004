"""Operations on the user's file of profiles, for those who may write: where it is, schemas, add, edit and remove."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field

from jupyter_autotrain import backends
from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.client import profile_changes
from jupyter_autotrain.client.profile_changes import ProfileChange
from jupyter_autotrain.header import HeaderContext, profile_editing, value_faults
from jupyter_autotrain.header.backend_models import profile_model
from jupyter_autotrain.header.document import Fault, KeyPath, SourceLocation, resolve
from jupyter_autotrain.header.profiles import USER_FILE, Definition
from jupyter_autotrain.header.yaml_reader import load
from jupyter_autotrain.server.backends import RESOURCE, header_context, level_of
from jupyter_autotrain.server.context import ServerContext
from jupyter_autotrain.server.endpoint import Answer, Asked, Endpoint
from jupyter_autotrain.server.problems import not_found

Key = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
Text = Annotated[str, Field(max_length=4_000)]
# Keys of another form are refused, which the schema has to say too.
Settings = Annotated[dict[Key, Text], Field(max_length=100, json_schema_extra={"additionalProperties": False})]


class TypeAsked(Asked):
    """One type of backend."""

    type: str = Field(min_length=1, max_length=64, description="Its name.")


class ProfileAsked(Asked):
    """One profile."""

    profile: str = Field(min_length=1, max_length=64, description="Its name.")


class ProfileEdited(ProfileAsked):
    """Settings of a profile; what is not named stays as it is, with its comments."""

    texts: Settings = Field({}, description="Settings that are text, as they are.")
    yaml: Settings = Field({}, description="Other settings, as one writes them after their key: `2222`, `[gpu1]`.")
    unset: list[Key] = Field([], max_length=100, description="Settings to take away.")
    save: bool = Field(True, description="False: only say what would be wrong.")


class ProfileAdded(ProfileEdited):
    """A new profile."""

    type: str = Field(min_length=1, max_length=64, description="What kind of backend it is.")


def list_types(_: ServerContext, __: Asked) -> Answer:
    """Answer with the types of backends that are installed."""
    rows: list[JsonValue] = []
    for name, model in backends.options_models().items():
        needed = [key for key, option in model.model_fields.items() if option.is_required()]
        rows.append({"name": name, "text": (model.__doc__ or "").strip().partition("\n")[0], "needs": [*needed]})
    return Answer({"types": rows})


def show_type(_: ServerContext, asked: TypeAsked) -> Answer:
    """Answer with the JSON Schema of a profile of this type."""
    if asked.type not in backends.type_names():
        raise not_found(f"type {asked.type!r}", f"One of: {', '.join(backends.type_names())}.")
    schema: JsonObject = profile_model(asked.type, backends.options_model(asked.type)).model_json_schema()
    return Answer({"schema": schema})


def list_profiles(server: ServerContext, _: Asked) -> Answer:
    """Answer with the definitions of profiles, and the ones that win.

    The project's file comes before the user's.
    """
    context = header_context(server)
    profiles, faults = context.profiles()
    rows: list[JsonValue] = [_origin(context, one) for _, one in sorted(profiles.definitions.items())]
    return Answer({"files": _files(context), "profiles": rows, "faults": list(map(str, faults))})


def show_profile(server: ServerContext, asked: ProfileAsked) -> Answer:
    """Answer with the settings of a profile as its file has them.

    Those that look like a secret are left out and named.
    """
    context = header_context(server)
    definition = _definition(context, asked.profile)
    profiles, _ = context.profiles()
    _, faults = profiles.find(asked.profile)
    return Answer(
        {
            **_settings(definition, profiles.models),
            "level": level_of(context, definition),
            "location": str(definition.location),
            "faults": [_fault(fault, asked.profile) for fault in faults],
        }
    )


def add_profile(server: ServerContext, asked: ProfileAdded) -> Answer:
    """Write a new profile into the user's file, unless it would be faulty."""
    found, faults = _given(asked)
    change = profile_changes.added(header_context(server), asked.profile, {"type": asked.type, **found})
    return _saved(asked, change, faults)


def edit_profile(server: ServerContext, asked: ProfileEdited) -> Answer:
    """Change settings of a profile of the user's file, unless it would be faulty."""
    found, faults = _given(asked)
    context = header_context(server)
    _definition(context, asked.profile)
    change = profile_changes.changed(context, asked.profile, found, asked.unset)
    return _saved(asked, change, faults)


def remove_profile(server: ServerContext, asked: ProfileAsked) -> Answer:
    """Take a profile out of the user's file; experiments that run there go on."""
    context = header_context(server)
    _definition(context, asked.profile)
    profile_changes.removed(context, asked.profile).save()
    return Answer({"saved": True, "faults": []})


def _definition(context: HeaderContext, name: str) -> Definition:
    """Return the definition of a profile that a file has."""
    profiles, _ = context.profiles()
    definition = profiles.definitions.get(name)
    if definition is None:
        raise not_found(f"profile {name!r}", f"One of: {', '.join(profiles.definitions) or 'none'}.")
    return definition


def _given(asked: ProfileEdited) -> tuple[dict[str, JsonValue], list[Fault]]:
    """Return the settings of a form, and the faults of those that are no YAML."""
    found: dict[str, JsonValue] = dict(asked.texts)
    faults = []
    for key, text in asked.yaml.items():
        document = load(list(enumerate(f"{key}: {text}".split("\n"), 1)))
        if document.faults or [*document.data] != [key]:
            place = SourceLocation(path=(asked.profile, key))
            example = "expected it as one writes it after its key, such as [gpu1, gpu2]"
            faults.append(Fault(f"{key} cannot be read", example, "", place))
            continue
        found[key] = resolve(document.data[key])  # type: ignore[assignment]  # plain YAML is plain JSON
    return found, faults


def _saved(asked: ProfileEdited, change: ProfileChange, faults: list[Fault]) -> Answer:
    rows: list[JsonValue] = [_fault(fault, asked.profile) for fault in (*faults, *change.faults)]
    if rows or not asked.save:
        return Answer({"saved": False, "faults": rows})
    change.save()
    return Answer({"saved": True, "faults": []})


def _fault(fault: Fault, name: str) -> JsonValue:
    """Return a fault with its path inside the profile.

    Its line is left out, because it is that of a file which is not written.
    """
    path = fault.location.path
    inside = path[path.index(name) + 1 :] if name in path else ()
    clauses = "; ".join(part.rstrip(".") for part in (fault.found, fault.expected, fault.action) if part)
    return {"path": list(map(str, inside)), "text": clauses}


def _origin(context: HeaderContext, definition: Definition) -> JsonValue:
    hidden = definition.hides
    row: JsonObject = {
        "name": definition.name,
        "level": level_of(context, definition),
        "location": str(definition.location),
        "hides": str(hidden.location) if hidden else "",
    }
    return row


def _files(context: HeaderContext) -> list[JsonValue]:
    """Return the files that may define profiles, the one that wins first."""
    project = context.project_file()
    folder = context.config_folder()
    rows: list[JsonValue] = [{"level": "project", "path": str(project) if project else "", "exists": bool(project)}]
    user = folder / USER_FILE if folder else None
    rows.append({"level": "user", "path": str(user or ""), "exists": bool(user and user.is_file())})
    return rows


def _settings(definition: Definition, models: Mapping[str, object]) -> JsonObject:
    """Return the settings under a profile's name: texts as they are, each also as YAML.

    Secrets are given by their key alone.
    """
    settings = definition.settings if isinstance(definition.settings, dict) else {}
    model = models.get(str(settings.get("type")))
    of_secrets = getattr(model, "names_of_secrets", ())
    stray = value_faults.in_profile(settings, definition.document, definition.path, of_secrets)
    hidden = {_key_in(path, definition.path) for path, _ in stray}
    shown = {key: value for key, value in settings.items() if key not in hidden and key != "type"}
    yaml: JsonObject = {key: _yaml(value) for key, value in shown.items()}
    texts: JsonObject = {key: str(value) for key, value in shown.items() if isinstance(value, str)}
    named: list[JsonValue] = [*sorted(hidden)]
    return {"type": str(settings.get("type", "")), "yaml": yaml, "texts": texts, "hidden": named}


def _key_in(path: KeyPath, above: KeyPath) -> str:
    return str(path[len(above)])


def _yaml(value: object) -> str:
    return profile_editing.text_of(resolve(value))  # type: ignore[arg-type]  # plain YAML is plain JSON


ENDPOINTS: Final = (
    Endpoint("GET", "/backend-types", RESOURCE, "The types of backends", Asked, list_types, {"types": "array"}),
    Endpoint(
        "GET", "/backend-types/{type}", RESOURCE, "The JSON Schema of profiles of a type", TypeAsked, show_type,
        {"schema": "object"},
    ),
    Endpoint(
        "GET", "/profiles", RESOURCE, "Where profiles are defined, and which definition wins", Asked, list_profiles,
        {"files": "array", "profiles": "array", "faults": "array"}, is_private=True,
    ),
    Endpoint(
        "POST", "/profiles", RESOURCE, "Add a profile to the user's file", ProfileAdded, add_profile,
        {"saved": "boolean", "faults": "array"},
    ),
    Endpoint(
        "GET", "/profiles/{profile}", RESOURCE, "The settings of a profile, without secrets", ProfileAsked,
        show_profile, {"type": "string", "yaml": "object", "texts": "object", "hidden": "array"}, is_private=True,
    ),
    Endpoint(
        "PATCH", "/profiles/{profile}", RESOURCE, "Change a profile of the user's file", ProfileEdited, edit_profile,
        {"saved": "boolean", "faults": "array"},
    ),
    Endpoint(
        "DELETE", "/profiles/{profile}", RESOURCE, "Remove a profile from the user's file", ProfileAsked,
        remove_profile, {"saved": "boolean", "faults": "array"},
    ),
)  # fmt: skip

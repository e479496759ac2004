"""Credentials written into a header: named by their place, never shown."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from jupyter_autotrain.core.credentials import ALLOWED, holds_credential, is_credential, names_credential
from jupyter_autotrain.header.document import Document, Lines
from jupyter_autotrain.header.faults import Fault, KeyPath, SourceLocation, looks_secret

_SHOWN_NAME = 60
DEEPEST = 24


def in_settings(document: Document) -> Iterator[Fault]:
    """A fault for each text of the settings that looks like a secret and is not named under `not_secrets:`."""
    named = document.data.get("not_secrets")
    allowed = {str(name) for name in named} if isinstance(named, list | tuple) else {str(named)}
    for path, text in _texts(document.data, ()):
        if path[0] in {"secrets", "not_secrets", "backend"} or allowed & {str(part) for part in path}:
            continue
        in_env = path[0] == "env" and (is_credential(str(path[-1]), text) or looks_secret(text))
        if in_env or holds_credential(text):
            yield _fault(path, document.location(path))


def in_profile(
    settings: Mapping[str, object], document: Document, above: KeyPath, names: Collection[str] = ()
) -> Iterator[tuple[KeyPath, Fault]]:
    """The path and the fault of each text of a profile that is, or by its name would be, a secret.

    Args:
        settings: The profile.
        document: What it is a part of.
        above: Where in it.
        names: Keys whose text is the name of a secret that is kept elsewhere; only its form can make it one.
    """
    for path, text in _texts(settings, above):
        name = next(str(part) for part in reversed(path) if isinstance(part, str))
        by_name = names_credential(name) or is_credential(name, text)
        if _is_secret(text) if name in names else by_name:
            dotted = ".".join(str(part) for part in path)[:_SHOWN_NAME]
            yield (
                path,
                Fault(
                    f"{dotted}: what looks like a secret (not shown here)",
                    "expected no secrets in a profile",
                    "name a key file (`key_file: ~/.ssh/id_lab`), or set an environment variable and name that",
                    document.location(path),
                ),
            )


def _is_secret(text: str) -> bool:
    return holds_credential(text) or looks_secret(text)


def in_comments(lines: Lines) -> Iterator[Fault]:
    """A fault for each comment of a header that holds a secret: a header is kept as it is written."""
    for number, text in lines:
        comment = text.partition("#")[2]
        if comment and ALLOWED not in comment and holds_credential(comment):
            expected = "expected no secrets in a header"
            action = "remove it"
            yield Fault(
                "a comment holds what looks like a secret (not shown here)", expected, action, SourceLocation(number)
            )


def _texts(value: object, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if len(path) > DEEPEST:
        return  # text is never so deep, and a value given in Python may hold itself
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _texts(item, (*path, index))


def _fault(path: KeyPath, location: SourceLocation) -> Fault:
    dotted = ".".join(str(part) for part in path)[:_SHOWN_NAME]
    name = str(path[-1])[:_SHOWN_NAME]
    variable = name.upper() if name.isidentifier() else "API_KEY"
    return Fault(
        f"{dotted}: what looks like a secret (not shown here)",
        "expected its name under secrets:",
        f"write `secrets: [{variable}]` and set it in the environment; if it is none, `not_secrets: [{name}]`",
        location,
    )

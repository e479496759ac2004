"""Changes of the user's file of profiles, as text: what is not changed stays as it was written. Pure."""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Mapping
from typing import Final

from ruamel.yaml import YAML

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.errors import BackendError

_HEAD: Final = "# Backends by name. See: %autotrain help backend\n"
_KEY = re.compile(r"(?:'([^']*)'|\"([^\"]*)\"|([^\s#'\"\[\]{}-][^:#]*?))\s*:(?=\s|$)")
_ENDLESS = 10**6  # characters on a line: nothing is broken


def added(text: str, name: str, settings: Mapping[str, JsonValue]) -> str:
    """Return the text with a profile more, at its end."""
    block = _block(name, settings)
    if not text.strip():
        return f"{text or _HEAD}{block}"
    end = "" if text.endswith("\n") else "\n"
    return f"{text}{end}{block}"


def removed(text: str, name: str) -> str:
    """Return the text without a profile; comments around it stay.

    Raises:
        BackendError: It is not written on lines of its own.
    """
    lines = text.splitlines(keepends=True)
    begin, end = _lines_of(lines, name)
    return "".join([*lines[:begin], *lines[end:]])


def block_of(text: str, name: str) -> str:
    """Return the lines of a profile, as they stand in the text.

    Raises:
        BackendError: It is not written on lines of its own.
    """
    lines = text.splitlines(keepends=True)
    begin, end = _lines_of(lines, name)
    return "".join(lines[begin:end])


def changed(text: str, name: str, settings: Mapping[str, JsonValue], unset: Collection[str] = ()) -> str:
    """Return the text with some settings of a profile changed; comments in it stay where their lines do.

    Args:
        text: The file.
        name: The profile.
        settings: The new ones.
        unset: Those to take away.

    Raises:
        BackendError: It is not written on lines of its own.
    """
    lines = text.splitlines(keepends=True)
    begin, end = _lines_of(lines, name)
    yaml = _writer()
    whole = yaml.load("".join(lines[begin:end]))
    for key in unset:
        whole[name].pop(key, None)
    for key, value in settings.items():
        whole[name][key] = _flowing(value)
    return "".join([*lines[:begin], _written(yaml, whole), *lines[end:]])


def text_of(value: JsonValue) -> str:
    """Return a setting as one writes it after its key, on one line."""
    return _block("value", {"value": value}).partition("value: ")[2].strip()


def _lines_of(lines: list[str], name: str) -> tuple[int, int]:
    """Return the first line of a profile, and the one after its last."""
    begin = next((number for number, line in enumerate(lines) if _key_on(line) == name), None)
    if begin is None:
        raise BackendError(
            f"The profile {name!r} is not written on lines of its own.",
            f"`{name}:` at the beginning of a line.",
            "Change the file by hand.",
        )
    end = begin + 1
    for number in range(begin + 1, len(lines)):
        if lines[number][:1] not in " \t\r\n#":
            break
        if lines[number].strip() and lines[number][0] in " \t":
            end = number + 1
    return begin, end


def _key_on(line: str) -> str | None:
    match = _KEY.match(line)
    return next((group for group in match.groups() if group is not None), "") if match else None


def _block(name: str, settings: Mapping[str, JsonValue]) -> str:
    yaml = _writer()
    return _written(yaml, {name: {key: _flowing(value) for key, value in settings.items()}})


def _flowing(value: JsonValue) -> object:
    """Return lists and mappings on one line, as `[gpu1, gpu2]`."""
    yaml = _writer()
    yaml.default_flow_style = True
    text = _written(yaml, {"value": value})
    return yaml.load(text)["value"]


def _writer() -> YAML:
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = _ENDLESS
    return yaml


def _written(yaml: YAML, value: object) -> str:
    stream = io.StringIO()
    yaml.dump(value, stream)
    return stream.getvalue()

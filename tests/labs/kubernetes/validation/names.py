"""Names, labels and annotations as the server allows them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.labs.kubernetes.objects.errors import Cause
from tests.labs.kubernetes.objects.values import Json

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_ANNOTATIONS_LIMIT = 256 * 1024
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_LABEL_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def _checked(path: str, text: str, pattern: re.Pattern[str], rule: str, longest: int) -> Iterator[Cause]:
    if len(text) > longest:
        yield Cause(path, f'Invalid value: "{text}": must be no more than {longest} characters')
    if not pattern.fullmatch(text):
        yield Cause(path, f'Invalid value: "{text}": {rule}')


def subdomain_name(path: str, text: str) -> Iterator[Cause]:
    """Return a name of most kinds."""
    return _checked(path, text, _SUBDOMAIN, _SUBDOMAIN_RULE, 253)


def label_name(path: str, text: str) -> Iterator[Cause]:
    """Return a name that becomes part of a host name."""
    return _checked(path, text, _LABEL, _LABEL_RULE, 63)


def label_1035_name(path: str, text: str) -> Iterator[Cause]:
    """Return the name of a Service."""
    return _checked(path, text, _LABEL_1035, _LABEL_1035_RULE, 63)


def config_key(path: str, text: str) -> Iterator[Cause]:
    """Return a key of a ConfigMap or Secret."""
    return _checked(path, text, _CONFIG_KEY, _KEY_RULE, 253)


def label_causes(path: str, found: Json | None) -> Iterator[Cause]:
    """Labels of an object."""
    for key, value in (found or {}).items():
        yield from _qualified(path, key)
        yield from _checked(path, value, _VALUE, _VALUE_RULE, 63)


def annotation_causes(path: str, found: Json | None) -> Iterator[Cause]:
    """Annotations of an object."""
    size = sum(len(key) + len(value) for key, value in (found or {}).items())
    for key in found or {}:
        yield from _qualified(path, key.lower())
    if size > _ANNOTATIONS_LIMIT:
        yield Cause(path, f"Too long: may not be more than {_ANNOTATIONS_LIMIT} bytes", "FieldValueTooLong")


def _qualified(path: str, key: str) -> Iterator[Cause]:
    prefix, slash, name = key.rpartition("/")
    if slash and not _SUBDOMAIN.fullmatch(prefix):
        yield Cause(path, f'Invalid value: "{key}": prefix part {_SUBDOMAIN_RULE}')
    if len(name) > 63:
        yield Cause(path, f'Invalid value: "{key}": name part must be no more than 63 characters')
    if not _QUALIFIED.fullmatch(name):
        yield Cause(path, f'Invalid value: "{key}": {_NAME_RULE}')

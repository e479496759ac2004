"""The header's `hooks:`: web addresses and commands that are told of ends and failures, checked."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, model_validator

from jupyter_autotrain.agent.credentials import names_credential
from jupyter_autotrain.core.hooks import EVENTS, Hook, variables_in
from jupyter_autotrain.header.document import UnfitError, looks_secret, resolve
from jupyter_autotrain.header.quantities import OneOf
from jupyter_autotrain.header.sections.section import Section
from jupyter_autotrain.header.types import Duration, Text, list_of_words

_SECRET_FIELDS = frozenset({"authorization", "proxy-authorization", "cookie"})
_FORM = "expected its value from the environment, as in `Authorization: Bearer ${MY_TOKEN}`"
_LONGEST_S = 300.0


def _url(value: object) -> str:
    text = value.strip() if isinstance(value, str) else ""
    if variables_in((text,)) and text.startswith("${"):
        return text
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UnfitError("expected an address such as https://example.com/hook, or ${NAME} of a variable that has it")
    if parts.username or parts.password:
        raise UnfitError("expected no password in it", "set a variable, and write ${NAME}", found="an address")
    return text


def _service(value: object) -> str:
    text = value.strip() if isinstance(value, str) else ""
    begin, colon, rest = text.partition("://")
    is_address = text.startswith("${") or (colon and begin.replace("+", "").isalnum())
    if not is_address:
        raise UnfitError("expected an address of Apprise such as slack://${SLACK_TOKENS}, or ${NAME} that has it")
    if (rest and not variables_in((text,))) or any(map(looks_secret, text.split("/"))):
        raise UnfitError(
            "expected its secrets from the environment, as in slack://${SLACK_TOKENS}",
            "set that variable where you submit", found="an address with what may be a secret (not shown here)",
        )  # fmt: skip
    return text


def _header(value: object, name: str) -> str:
    text = str(resolve(value))
    if not (name + text).isprintable():
        raise UnfitError("expected one line of text", found=f"the header {name!r}")
    is_secret = name.lower() in _SECRET_FIELDS or names_credential(name.replace("-", "_"))
    has_variable = bool(variables_in((text,)))
    if (is_secret and not has_variable) or any(map(looks_secret, text.split())):
        raise UnfitError(_FORM, "set that variable where you submit", found="what looks like a secret (not shown here)")
    return text


def _headers(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise UnfitError("expected a mapping such as {Authorization: 'Bearer ${MY_TOKEN}'}")
    return {str(name): _header(text, str(name)) for name, text in value.items()}


def _command(value: object) -> tuple[str, ...]:
    try:
        words = shlex.split(value) if isinstance(value, str) else [str(resolve(word)) for word in list_of_words(value)]
    except ValueError:
        words = []
    if not words:
        raise UnfitError("expected a program and its arguments, such as [sh, tell.sh]")
    return tuple(words)


def _timeout(seconds: float) -> float:
    if not 0 < seconds <= _LONGEST_S:
        raise UnfitError(f"expected at most {_LONGEST_S:g} s")
    return seconds


Event = Annotated[str, OneOf(EVENTS)]


class HookSection(Section):
    """Whom to tell; give one of `url`, `command` and `service`."""

    url: Annotated[str, BeforeValidator(_url)] | None = Field(
        default=None,
        description="An address that gets a POST of JSON; `${NAME}` stands for an environment variable, read when it "
        "is sent. Redirects are not followed.",
        examples=["https://example.com/hook", "${SLACK_WEBHOOK_URL}"],
    )
    headers: Annotated[dict[Text, Text], BeforeValidator(_headers)] = Field(
        default_factory=dict,
        description="Header fields of the POST; secrets only as `${NAME}`.",
        examples=["{Authorization: 'Bearer ${MY_TOKEN}'}"],
    )
    command: Annotated[tuple[Text, ...], BeforeValidator(_command)] | None = Field(
        default=None,
        description="A program that gets the JSON on its standard input, here, in your home folder, without a shell; "
        "what it leaves running at its end or after `timeout` is ended.",
        examples=["[sh, tell.sh]"],
    )
    service: Annotated[str, BeforeValidator(_service)] | None = Field(
        default=None,
        description="A chat or mail service, by its address in Apprise (Slack, Teams, Discord, Matrix, mail and 100 "
        "more); secrets only as `${NAME}`. Needs `pip install 'jupyter-autotrain[notify]'`.",
        examples=["slack://${SLACK_TOKENS}", "mailto://${MAIL_LOGIN}@example.com"],
    )
    events: Annotated[tuple[Event, ...], BeforeValidator(list_of_words)] = Field(
        default=("ended",), description=f"When: of {', '.join(EVENTS)}.", examples=["[ended, trial_failed]"]
    )
    timeout: Duration = Field(default=10.0, description="Longest time of one try.", examples=["30s"])

    @model_validator(mode="after")
    def _is_one_of_three(self) -> Self:
        given = [name for name in ("url", "command", "service") if getattr(self, name) is not None]
        if len(given) != 1:
            found = f"a hook with {' and '.join(given) or 'none of them'}"
            raise UnfitError("expected one of `url:`, `command:` and `service:`", found=found)
        if self.headers and self.url is None:
            raise UnfitError(f"expected no headers: a {given[0]} gets none", found=f"a {given[0]} with headers")
        _timeout(self.timeout)
        return self

    def to_hook(self, name: str) -> Hook:
        """Return the hook as a spec keeps it."""
        return Hook(
            name, self.url or "", dict(self.headers), self.command or (), self.events, self.timeout, self.service or ""
        )

"""Texts that look like credentials: by their form, or by a name together with its value. Pure and linear.

The forms are those that issuers publish, so that a stray key is found without knowing it. They are guesses: whoever
uses them must offer a way to mark a text as no credential.
"""

from __future__ import annotations

import re

ALLOWED = "pragma: allowlist secret"  # the comment by which detect-secrets too lets a line pass

# A literal that every such text holds, and its full form: searching the literal first keeps large data cheap.
_FORMS = (
    (b"hf_", rb"hf_[A-Za-z0-9]{12}"),
    (b"sk-", rb"sk-[\w-]{0,40}?[A-Za-z0-9]{16}"),
    (b"sk_live_", rb"sk_live_[A-Za-z0-9]{12}"),
    (b"rk_live_", rb"rk_live_[A-Za-z0-9]{12}"),
    (b"ghp_", rb"ghp_[A-Za-z0-9]{16}"),
    (b"gho_", rb"gho_[A-Za-z0-9]{16}"),
    (b"ghu_", rb"ghu_[A-Za-z0-9]{16}"),
    (b"ghs_", rb"ghs_[A-Za-z0-9]{16}"),
    (b"ghr_", rb"ghr_[A-Za-z0-9]{16}"),
    (b"github_pat_", rb"github_pat_\w{16}"),
    (b"glpat-", rb"glpat-[\w-]{16}"),
    (b"AKIA", rb"AKIA[0-9A-Z]{16}"),
    (b"ASIA", rb"ASIA[0-9A-Z]{16}"),
    (b"AIza", rb"AIza[\w-]{30}"),
    (b"xox", rb"xox[abeoprs]-[\w-]{10}"),
    (b"eyJ", rb"eyJ[\w-]{8,4000}\.eyJ[\w-]{4}"),
    (b"npm_", rb"npm_[A-Za-z0-9]{36}"),
    (b"pypi-AgE", rb"pypi-AgE[\w-]{16}"),
    (b"-----BEGIN ", rb"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----"),
    (b"://", rb"://[^\s/:@\"'<>{}$]{1,64}:[^\s/@\"'<>{}$]{3,128}@[\w.\[-]"),
)
# Inside a word it is none, as in "task-..."; in a pickle the length of a text stands before it, and may be a letter.
_APART = rb"(?:(?<![A-Za-z0-9])|(?<=[\x8cC].))"
_ONE_PIECE = re.compile(r"[A-Za-z0-9+/=_.-]+")
_DIGIT = re.compile(r"[0-9]")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_NAMED_SECRET = frozenset(
    {"password", "passwd", "passphrase", "secret", "secrets", "credential", "credentials", "apikey"}
)
_KINDS_OF_KEY = frozenset({"api", "access", "private", "secret", "signing", "encryption", "auth", "account"})
# What follows such a word and makes it the name of something else, as in `password_field`.
_ABOUT = frozenset(
    {"file", "path", "dir", "name", "names", "field", "fields", "length", "len", "size", "env", "var", "variable", "id"}
    | {"ids", "column", "columns", "count", "manager", "prompt", "label", "labels", "policy", "url", "type", "hash"}
)
_VARIABLE_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_MOST_CHARS = 4096


def holds_credential(data: str | bytes) -> bool:
    """Tell whether a text, or data such as a pickle, holds a key, a token or a URL with a password, by its form.

    Complexity: linear in the length.
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return any(_holds(raw, literal, form) for literal, form in _FORMS)


def _holds(raw: bytes, literal: bytes, form: bytes) -> bool:
    position = raw.find(literal)
    if position < 0:
        return False
    # Compiled where it is needed, which is seldom: all of them take 5 ms, and every job of a cluster imports this.
    full = re.compile((_APART if literal[:1].isalnum() else b"") + form, re.DOTALL)
    while position >= 0:
        if full.match(raw, position):
            return True
        position = raw.find(literal, position + len(literal))
    return False


def names_credential(name: str) -> bool:
    """Tell whether a name denotes a credential, such as HF_TOKEN, db_password or awsSecretAccessKey."""
    words = _words(name)
    return _names_secret(words) or words[-1:] in (["token"], ["key"], ["pat"])


def is_credential(name: str, value: object) -> bool:
    """Tell whether a text is a credential, by its form or by its name.

    The name counts only for a text that could be one: `api_key = "k3J..."`, not `token = "[CLS]"` or `key = "epoch"`.
    """
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    if not isinstance(text, str) or not text:
        return False
    if holds_credential(text):
        return True
    if len(text) > _MOST_CHARS or any(c.isspace() for c in text) or _VARIABLE_NAME.fullmatch(text):
        return False
    words = _words(name)
    if _names_secret(words):
        return sum(c.isalnum() for c in text) >= 6 and text[0] not in "<{[*$"
    if words[-1:] == ["token"]:
        return len(text) >= 16 and _is_random(text, mixed_case=False)
    return words[-1:] == ["key"] and len(text) >= 20 and _is_random(text, mixed_case=True)


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name[:200])]


def _names_secret(words: list[str]) -> bool:
    for i, word in enumerate(words):
        is_key = word in {"key", "keys"} and i > 0 and words[i - 1] in _KINDS_OF_KEY
        if (word in _NAMED_SECRET or is_key) and not _ABOUT.intersection(words[i + 1 :]):
            return True
    return False


def _is_random(text: str, *, mixed_case: bool) -> bool:
    """Tell whether a text is letters and digits in one piece, as a generator makes them and a person does not."""
    if not _ONE_PIECE.fullmatch(text) or not _DIGIT.search(text):
        return False
    has_small = text != text.upper()
    has_capital = text != text.lower()
    return (has_small and has_capital) if mixed_case else (has_small or has_capital)

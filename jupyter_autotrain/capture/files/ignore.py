"""Ignore files in gitignore's syntax (`man gitignore`): `.autotrainignore` and `.nniignore` beside the notebook."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

IGNORE_FILES = (".autotrainignore", ".nniignore")
ALWAYS = (
    ".git/", ".hg/", ".svn/", "__pycache__/", "*.pyc", ".ipynb_checkpoints/", ".venv/", "node_modules/", ".DS_Store",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    ignores: bool
    folders_only: bool


class Ignore:
    """Decides which files stay here.

    Args:
        lines: Patterns; later ones win, as in gitignore.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._rules: Sequence[_Rule] = [rule for line in lines if (rule := _parse(line))]

    @classmethod
    def beside(cls, folder: Path, more: Iterable[str] = ()) -> Ignore:
        """The rules of a folder: what nobody wants to send, then its ignore files, then `more`."""
        lines = list(ALWAYS)
        for name in IGNORE_FILES:
            path = folder / name
            if path.is_file():
                lines += path.read_text(encoding="utf-8", errors="replace").splitlines()
        return cls([*lines, *more])

    def __call__(self, path: str, *, is_folder: bool = False) -> bool:
        """True when `path` (relative, with `/`) or a folder above it is ignored."""
        parts = path.split("/")
        above = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
        return any(self._matches(folder, is_folder=True) for folder in above) or self._matches(path, is_folder)

    def _matches(self, path: str, is_folder: bool) -> bool:
        for rule in reversed(self._rules):
            if (is_folder or not rule.folders_only) and rule.pattern.fullmatch(path):
                return rule.ignores
        return False


def _parse(line: str) -> _Rule | None:
    text = re.sub(r"(?<!\\) +$", "", line.rstrip("\r\n"))
    if not text or text.startswith("#"):
        return None
    ignores = not text.startswith("!")
    text = text if ignores else text[1:]
    folders_only = text.endswith("/")
    body = text.rstrip("/") if folders_only else text
    anchored = "/" in body
    body = body.removeprefix("/")
    if not body:
        return None
    expression = ("" if anchored else "(?:.*/)?") + _translate(body)
    try:
        return _Rule(re.compile(expression, re.DOTALL), ignores, folders_only)
    except re.error:  # such as [z-a], which fits nothing in git either
        return None


def _translate(pattern: str) -> str:
    """A gitignore pattern as a regular expression over the whole path."""
    out = list[str]()
    at = 0
    while at < len(pattern):
        token = _next_token(pattern, at)
        out.append(_meaning(token))
        at += len(token)
    return "".join(out)


def _next_token(pattern: str, at: int) -> str:
    for special in ("/**/", "**/", "/**"):
        whole = at == 0 or special.startswith("/")
        ends = special != "/**" or at + 3 == len(pattern)
        if pattern.startswith(special, at) and whole and ends:
            return special
    character = pattern[at]
    if character == "\\":
        return pattern[at : at + 2]
    if character == "*":
        return re.match(r"\*+", pattern[at:])[0]  # type: ignore[index]  # it starts with one
    if character == "[" and (found := re.match(r"\[[!^]?\]?(?:\\.|[^\]\\])*\]", pattern[at:])):
        return found[0]
    return character


_FIXED = {"/**/": "/(?:.*/)?", "**/": "(?:.*/)?", "/**": "/.+", "?": "[^/]"}


def _meaning(token: str) -> str:
    if token in _FIXED:
        return _FIXED[token]
    if token.startswith("*"):
        return "[^/]*"
    if len(token) > 1 and token.startswith("["):
        return _one_of(token)
    return re.escape(token[1:] if token.startswith("\\") else token)


def _one_of(token: str) -> str:
    """`[a-c]` or `[!a-c]`; neither takes a slash."""
    negated = token[1] in "!^"
    inner = token[2 if negated else 1 : -1].replace("[", r"\[")
    inner = "\\" + inner if inner.startswith(("]", "^")) else inner
    return f"(?!/)[{'^' if negated else ''}{inner}]"

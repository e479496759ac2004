"""Ignore files in gitignore's syntax (`man gitignore`): `.autotrainignore` and `.nniignore`, in any folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

IGNORE_FILES = (".autotrainignore", ".nniignore")
ALWAYS = (
    ".git/", ".hg/", ".svn/", "__pycache__/", "*.pyc", ".ipynb_checkpoints/", ".venv/", "node_modules/", ".DS_Store",
)  # fmt: skip
_EVERYTHING = frozenset({"*", "**", "/**", "**/*", "/**/*", "**/**"})


@dataclass(frozen=True, slots=True)
class _IgnorePattern:
    """The pattern of one line without `!` and a last slash, and its effect on the paths that match."""

    pattern: str
    regex: re.Pattern[str]
    ignores: bool
    folders_only: bool

    def matches(self, path: str) -> bool:
        """Tell whether the path itself matches.

        The expressions of pathspec also match paths below it.
        """
        found = self.regex.search(path)
        if not found or (self.folders_only and not path.endswith("/")):
            return False
        if self.pattern in _EVERYTHING:
            return True
        end = found.end()
        return end < len(path) if self.pattern.endswith("/**") else end == len(path)


class IgnoreRules:
    """The rules by which files stay here, as git has them in its own ignore files.

    The last pattern that matches in the nearest ignore file decides; nothing below an ignored folder travels.
    pathspec reads the patterns. The order is kept here, because `GitIgnoreSpec` knows no ignore files in folders and
    takes a file out of an ignored folder where git does not.

    Args:
        folder: Where paths start; its ignore files and those of the folders below it count.
        patterns: Patterns that take precedence over every ignore file, as if given to git on the command line.
    """

    def __init__(self, folder: Path, patterns: Iterable[str] = ()) -> None:
        self._folder = folder
        self._first = _rules(patterns)
        self._last = _rules(ALWAYS)
        self._of_folder = cache(self._read)
        self._ignores_folder = cache(self._ignores)

    def __call__(self, path: str, *, is_folder: bool = False) -> bool:
        """Tell whether `path` (relative, with `/`) or a folder above it is ignored."""
        parts = path.split("/")
        above = ("/".join(parts[:depth]) + "/" for depth in range(1, len(parts)))
        return any(map(self._ignores_folder, above)) or self._ignores(f"{path}/" if is_folder else path)

    def _ignores(self, path: str) -> bool:
        """Tell whether the rules ignore this path itself; a folder ends in a slash."""
        for start, rules in self._rules_for(path):
            below = path[len(start) :]
            found = next((rule for rule in reversed(rules) if rule.matches(below)), None)
            if found:
                return found.ignores
        return False

    def _rules_for(self, path: str) -> Iterator[tuple[str, Sequence[_IgnorePattern]]]:
        """Yield the rules that may match a path, with the folder that each list is for.

        Those that take precedence come first.
        """
        yield "", self._first
        parents = path.rstrip("/").split("/")[:-1]
        for depth in range(len(parents), -1, -1):
            start = "".join(f"{name}/" for name in parents[:depth])
            yield start, self._of_folder(start)
        yield "", self._last

    def _read(self, start: str) -> Sequence[_IgnorePattern]:
        lines: list[str] = []
        for name in IGNORE_FILES:
            file = self._folder / start / name
            if file.is_file():
                lines += file.read_text(encoding="utf-8", errors="replace").splitlines()
        return _rules(lines)


def _rules(lines: Iterable[str]) -> Sequence[_IgnorePattern]:
    read = map(_rule, lines)
    return list(filter(None, read))


def _rule(line: str) -> _IgnorePattern | None:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # noqa: PLC0415 - not before a cell is captured

    try:
        expression, ignores = GitIgnoreSpecPattern.pattern_to_regex(line)
        if expression is None:
            return None
        regex = re.compile(expression.replace("[^", "[^/"))  # `[!a]` takes no slash
    except (ValueError, re.error):  # such as [z-a], which matches nothing in git either
        return None
    pattern = line.removeprefix("!").rstrip()
    return _IgnorePattern(pattern.removesuffix("/"), regex, bool(ignores), pattern.endswith("/"))

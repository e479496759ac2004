"""Pages of the documentation site that are made from the package itself, at each build: a hook of MkDocs."""

from __future__ import annotations

import inspect
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from jupyter_autotrain import backends, errors
from jupyter_autotrain.agent import wire
from jupyter_autotrain.header import help as header_help
from jupyter_autotrain.store import schema
from jupyter_autotrain.verbs.grammar import grammar

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parents[1]


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the generated pages to those of the folder."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - tests make the pages without MkDocs

    for name, page in PAGES.items():
        files.append(File.generated(config, f"reference/{name}", content=page()))
    return files


def header_page() -> str:
    """Return all keys of the header, as `%autotrain help KEY` explains them."""
    known = backends.header_schema()
    lines = [
        "# Header keys",
        "",
        "A header is YAML above `---` in the cell, or lines `#| key: value`. `%autotrain help KEY` says the same;",
        "`%autotrain schema` prints the JSON Schema.",
    ]
    for group, keys in header_help.KEY_GROUPS.items():
        lines += ["", f"## {group.capitalize()}"]
        for key in keys:
            lines += ["", f"### `{key}` {{ #{key} }}", "", *key_lines(key, known)]
    return "\n".join(lines)


def key_lines(key: str, known: type) -> Iterator[str]:
    """Give what a key means, what may stand inside it, its default and its examples."""
    field = header_help.field_of(key, known)
    yield field.description
    yield ""
    inner = [name for name in header_help.known_keys(known) if name.startswith(f"{key}.") and name.count(".") == 1]
    if inner and key != "backend":
        yield from ["| inside it | means |", "|---|---|"]
        for name in inner:
            yield f"| `{name}` | {header_help.field_of(name, known).description} |"
        yield ""
    if key == "backend":
        yield from ["The options of each type are on [a page of their own](options.md).", ""]
    if values := header_help.options_of(key, known):
        yield from [f"One of: {', '.join(f'`{value}`' for value in values)}.", ""]
    yield f"Default: `{header_help.default_of(key, known)}`."
    if field.examples:
        examples = "\n".join(f"{key}: {example}" for example in field.examples)
        yield from ["", f"```text\n{examples}\n```"]


def options_page() -> str:
    """Return the table of options that a test keeps equal to the models."""
    return (ROOT / "jupyter_autotrain" / "backends" / "OPTIONS.md").read_text(encoding="utf-8")


def verbs_page() -> str:
    """Return the usage of each verb, from its parser."""
    lines = [
        "# Verbs",
        "",
        "`%autotrain VERB` in a notebook and `jupyter autotrain VERB` in a shell do the same. Experiments are named by",
        "`name`, `name@N`, a unique prefix of the id, `-1` (the newest of this notebook; in a shell, of all) or `_`.",
        "`status` is another name of `ls`, `attach` of `show`.",
    ]
    for name, parser in grammar().items():
        if name not in {"status", "attach"}:
            lines += ["", f"## {name}", "", f"```text\n{parser.format_help().rstrip()}\n```"]
    return "\n".join(lines)


def errors_page() -> str:
    """Return the tree of errors."""
    return "\n".join(
        [
            "# Errors",
            "",
            "Every error that the package raises on purpose is an `AutotrainError` and says three things: what was",
            "found, what was expected, and what to do next. They can be imported from `jupyter_autotrain.errors`.",
            "",
            inspect.getdoc(errors) or "",
        ]
    )


def formats_page() -> str:
    """Return the files of a trial directory and the tables of the store, as the newest schema has them."""
    database = sqlite3.connect(":memory:")
    for statements in schema.MIGRATIONS:
        database.executescript(statements)
    rows = database.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    tables = ";\n".join(sql for (sql,) in rows)
    return "\n".join(
        [
            "# Formats",
            "",
            "Both formats may change before version 1.0. A newer version reads what an older one has written.",
            "",
            "## The trial directory",
            "",
            inspect.getdoc(wire) or "",
            "",
            "## The store",
            "",
            "The store is one SQLite file in the home. `jupyter autotrain ls --json` and the REST list of the Jupyter",
            "server are the interfaces to read it; the tables are here for who debugs.",
            "",
            inspect.getdoc(schema) or "",
            "",
            f"```sql\n{tables};\n```",
        ]
    )


PAGES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {
        "header.md": header_page,
        "options.md": options_page,
        "verbs.md": verbs_page,
        "errors.md": errors_page,
        "formats.md": formats_page,
    }
)
"""The generated pages by their file in `reference/`."""

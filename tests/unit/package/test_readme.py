"""Where the README leads, in the repository and on the page of a distribution."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMPARISON = (ROOT / "docs" / "help" / "comparison.md").read_text(encoding="utf-8")
LINK = re.compile(r"""\]\(([^)]+)\)|(?:src|srcset)="([^"]+)\"""")


def targets(text: str) -> list[str]:
    return [first or second for first, second in LINK.findall(text)]


def published() -> str:
    """Return the text as the hook of hatch makes it for a distribution."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    text = README
    for one in project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(one["pattern"], one["replacement"], text)
    return text


def test_each_file_that_the_readme_links_exists() -> None:
    paths = [target for target in targets(README) if not target.startswith("https:")]
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_a_distribution_has_only_whole_addresses_of_the_same_files() -> None:
    base = "https://github.com/jupyter-autotrain/jupyter-autotrain/blob/main/"
    raw = "https://raw.githubusercontent.com/jupyter-autotrain/jupyter-autotrain/main/"
    found = targets(published())
    assert [target for target in found if not target.startswith("https://")] == []
    names = [target.removeprefix(base).removeprefix(raw) for target in found]
    assert names == targets(README)
    assert all(target.startswith(raw) for target in found if target.endswith((".png", ".webp")))


def test_how_many_strategies_execute_is_what_the_table_of_choices_says() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "strategies.py")]
    row = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.splitlines()[0]
    assert row.startswith("| strategies execute | of ")
    assert row in COMPARISON.splitlines(), "write it anew: python benchmarks/strategies.py --write"

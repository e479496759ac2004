"""Faults that axe-core finds below one of our roots; what JupyterLab itself does is not looked at."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.browser.lab_page import DARK, LIGHT, in_dark_colours

AXE = Path(__file__).parents[2] / "labextension" / "node_modules" / "axe-core" / "axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# A rule of a whole page: the parts of JupyterLab's page are JupyterLab's.
NOT_OURS = ["region"]
OF_COLOURS = ["color-contrast", "link-in-text-block"]  # all that a theme can break
RUN = """async ([selector, type, values, off]) => {
    const rules = Object.fromEntries(off.map((rule) => [rule, { enabled: false }]));
    const options = { runOnly: { type, values }, rules, resultTypes: ['violations'] };
    const found = await axe.run(selector, options);
    return found.violations.flatMap((violation) => violation.nodes.map((node) =>
        `${violation.id} (${violation.impact}): ${node.target.join(' ')} | ${node.html.slice(0, 160)} | ` +
        (node.any[0] ?? node.all[0] ?? node.none[0])?.message));
}"""


def violations(page: Any, selector: str, *, colours_alone: bool = False) -> list[str]:
    """Each element that breaks a rule: the rule, where, and why."""
    if not AXE.exists():
        pytest.skip(f"axe-core is not installed: cd {os.path.relpath(AXE.parents[2])} && jlpm install")
    assert page.locator(selector).count() > 0, f"nothing is shown as {selector}"
    if not page.evaluate("() => 'axe' in window"):
        page.add_script_tag(content=AXE.read_text())
    asked = ["rule", OF_COLOURS, []] if colours_alone else ["tag", TAGS, NOT_OURS]
    found: list[str] = page.evaluate(RUN, [selector, *asked])
    return found


def broken(page: Any, selector: str) -> list[str]:
    """Return the rules that are broken in the light, and in the dark."""
    found = [f"{LIGHT}: {each}" for each in violations(page, selector)]
    with in_dark_colours(page):
        found += [f"{DARK}: {each}" for each in violations(page, selector, colours_alone=True)]
    return found

"""Widgets in pages that are not JupyterLab: they need none of its variables, and are read in the light and the dark."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from jupyter_autotrain.views.card import card
from tests.browser.accessibility import violations
from tests.browser.alone.conftest import Alone
from tests.browser.lab_page import ARE_KEPT

pytestmark = pytest.mark.browser


class Host(NamedTuple):
    """A page's theme, as it says and as it is."""

    system: str
    script: str
    is_dark: bool


HOSTS = {
    "plain, dark": Host("dark", "", True),
    "VS Code, dark in a light system": Host("light", "document.body.className = 'vscode-dark'", True),
    "VS Code, light in a dark system": Host("dark", "document.body.className = 'vscode-light'", False),
    "Colab, dark": Host("light", "document.documentElement.setAttribute('theme', 'dark')", True),
}
BY_DEFAULT = ("plain, dark", "VS Code, light in a dark system")  # what the system says, and what the page says
BRIGHTNESS = """(element) => {
    const parts = getComputedStyle(element).backgroundColor.match(/[\\d.]+/g).slice(0, 3).map(Number);
    return parts.reduce((sum, part) => sum + part, 0) / 3;
}"""


WIDTHS = """async (images) => {
    await Promise.all(images.map((image) => image.decode()));
    return images.map((image) => image.naturalWidth);
}"""


def enter(opened: Alone, host: Host) -> Alone:
    """Make the page of a view what the host says, whatever it was before."""
    opened.page.emulate_media(color_scheme=host.system)
    back = "#1f1f1f" if host.is_dark else "#fff"
    ink = "#ccc" if host.is_dark else "#222"
    opened.page.evaluate(
        f"""() => {{
            document.body.className = '';
            document.documentElement.removeAttribute('theme');
            document.body.style.background = '{back}';
            document.body.style.color = '{ink}';
            {host.script}
        }}"""
    )
    opened.painted()
    return opened


def hard_to_read(opened: Alone, selector: str) -> list[str]:
    """Return what has too little contrast."""
    return violations(opened.page, selector, colours_alone=True)


def test_a_view_is_read_in_the_theme_of_its_page(alone, make_place, plan):
    place = make_place()
    place.fill(ended=5)
    live = alone().show(place)
    live.view.locator("canvas").first.wait_for()
    preview = alone(bundle="plan").begin({"view": plan.view()})
    preview.view.get_by_role("heading").first.wait_for()
    for name in HOSTS if ARE_KEPT else BY_DEFAULT:
        host = HOSTS[name]
        for bundle, opened in (("live", live), ("plan", preview)):
            enter(opened, host).screenshot(f"{bundle}, {name}")
            assert (opened.view.evaluate(BRIGHTNESS) < 128) == host.is_dark, name
            assert hard_to_read(opened, ".autotrain") == [], name


def test_the_page_that_a_viewer_shows_in_place_of_a_view_is_read_too(alone, make_place, plan):
    place = make_place()
    place.fill(ended=5)
    kept = [card(place.store, place.store.experiment(place.id)).html, plan.to_html()]
    opened = alone()
    opened.page.evaluate("(kept) => { document.querySelector('main').innerHTML = kept.join('') }", kept)
    images = opened.page.locator("main img")
    assert images.count() >= 2
    for name in BY_DEFAULT:
        enter(opened, HOSTS[name])
        assert min(images.evaluate_all(WIDTHS)) > 0
        assert hard_to_read(opened, "main") == [], name

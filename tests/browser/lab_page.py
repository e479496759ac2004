"""Pages of JupyterLab with nothing open, their themes, and pictures of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.browser.jupyter_lab import Server

WAIT_MS = 120_000  # on a loaded machine a page takes a minute
ARTIFACTS = Path(__file__).parents[2] / "artifacts" / "screenshots"
LIGHT = "JupyterLab Light"
DARK = "JupyterLab Dark"


@contextmanager
def new_page(browser: Any, width: int = 1180, height: int = 1000, ours: str = "") -> Iterator[Any]:
    """A page that waits long for what is asked of it, and in which no script may have failed when the context ends.

    Args:
        ours: Only failures count whose stack has this text.
    """
    context = browser.new_context(viewport={"width": width, "height": height})
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(f"{error}\n{error.stack}"))
    try:
        yield page
    finally:
        context.close()
    assert [error for error in errors if ours in error] == []


@contextmanager
def empty_page(browser: Any, server: Server, width: int = 1180, height: int = 1000) -> Iterator[Any]:
    """A page of JupyterLab with nothing open."""
    with new_page(browser, width, height) as page:
        open_empty(page, server)
        yield page


def open_empty(page: Any, server: Server) -> None:
    """Load JupyterLab with nothing open."""
    page.goto(f"{server.url}/lab?token={server.token}&reset")
    page.wait_for_selector(".jp-LauncherCard")


def run_command(page: Any, name: str, **args: object) -> None:
    """Run a command of JupyterLab without waiting for its end."""
    page.evaluate("([name, args]) => { window.jupyterapp.commands.execute(name, args) }", [name, args])


def use_theme(page: Any, theme: str) -> None:
    """Change the theme; returns when the server keeps it and the page is drawn in it."""
    page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
    page.wait_for_selector(f"body[data-jp-theme-name='{theme}']", state="attached")
    until_splash_gone(page)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def until_splash_gone(page: Any) -> None:
    """Wait until nothing fades over the page: JupyterLab does that as it starts, and as a theme is loaded."""
    page.wait_for_selector("#jupyterlab-splash", state="detached")


@contextmanager
def in_theme(page: Any, theme: str) -> Iterator[None]:
    """Another theme while the context lasts; it is given back because the server keeps it for every page."""
    try:
        use_theme(page, theme)
        yield
    finally:
        use_theme(page, LIGHT)


def picture(page: Any, name: str) -> None:
    """Keep a picture of the page."""
    until_splash_gone(page)
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"{name}.png")

"""Pages of JupyterLab with nothing open, which tests may share, their themes, and pictures of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jupyter_autotrain.testing import wait_until
from tests.browser.jupyter_lab import Server

WAIT_MS = 120_000  # on a loaded machine a page takes a minute
ARTIFACTS = Path(__file__).parents[2] / "artifacts" / "screenshots"
ARE_KEPT = bool(os.environ.get("AUTOTRAIN_LONG_TESTS"))  # pictures are for people, and take a second each
LIGHT = "JupyterLab Light"
DARK = "JupyterLab Dark"


@contextmanager
def new_page(browser: Any, width: int = 1180, height: int = 1000, ours: str = "") -> Iterator[Any]:
    """Yield a page that waits long for what is asked of it; no script in it may have failed when the context ends.

    Args:
        ours: Only failures count whose stack has this text.
    """
    context = browser.new_context(viewport={"width": width, "height": height}, device_scale_factor=1)
    context.set_default_timeout(WAIT_MS)
    try:
        page = context.new_page()
        with no_errors(page, ours):
            yield page
    finally:
        context.close()


@contextmanager
def no_errors(page: Any, ours: str = "") -> Iterator[None]:
    """No script may fail in the page while the context lasts; where `ours` is given, none whose stack has this text."""
    errors: list[str] = []

    def keep(error: Any) -> None:
        errors.append(f"{error}\n{error.stack}")

    page.on("pageerror", keep)
    yield
    page.remove_listener("pageerror", keep)
    found = [error for error in errors if ours in error]
    assert not found, "\n".join(found)


@contextmanager
def empty_page(browser: Any, server: Server, width: int = 1180, height: int = 1000) -> Iterator[Any]:
    """Yield a page of JupyterLab with nothing open."""
    server.forget_preferences()
    with new_page(browser, width, height) as page:
        open_empty(page, server, "/workspaces/another")  # that of the shared page may be saved meanwhile
        yield page


def open_empty(page: Any, server: Server, workspace: str = "") -> None:
    """Load JupyterLab with nothing open."""
    page.goto(f"{server.url}/lab{workspace}?token={server.token}&reset")
    page.wait_for_selector(".jp-LauncherCard")


# What a tab keeps of the sidebar: "" or an empty list or text of each is as it begins.
_IS_KEPT = """() => Object.values(JSON.parse(sessionStorage['jupyter-autotrain:experiments'] ?? '{}'))
    .some((value) => value.length > 0)"""
# A notebook that is not saved is closed without a question.
# What was open before a page was loaded is open again when JupyterLab says that all is restored.
_CLOSE_ALL = """async () => {
    const { commands, restored, shell } = window.jupyterapp;
    await restored;
    await commands.execute('apputils:dismiss-notification', {});
    for (const widget of [...shell.widgets('main')]) {
        if (widget.context) widget.context.model.dirty = false;
        if (!widget.content?.hasClass('jp-Launcher')) widget.close();
    }
    shell.expandLeft();
}"""
_ARE_CLOSED = """() => !document.querySelector('.Toastify__toast')
    && [...window.jupyterapp.shell.widgets('main')].every((widget) => widget.content?.hasClass('jp-Launcher'))"""


def cleared(page: Any, server: Server, width: int = 1180, height: int = 1000) -> Any:
    """Make a page that earlier tests have used as one that begins: nothing is open, chosen or preferred in it."""
    page.unroute_all()
    page.mouse.move(0, 0)
    page.set_viewport_size({"width": width, "height": height})
    is_lost = not page.evaluate("() => 'jupyterapp' in window")
    if server.forget_preferences() or is_lost or page.evaluate(_IS_KEPT):
        page.goto(f"{server.url}/api/status?token={server.token}")  # there nothing writes what is cleared again
        page.evaluate("() => sessionStorage.clear()")
        open_empty(page, server)
    close_all(page)
    return page


def close_all(page: Any) -> None:
    """Close what is open in the main area, each question and notification; JupyterLab may open one more meanwhile."""

    def is_empty() -> bool:
        if page.get_by_role("dialog").count():
            page.keyboard.press("Escape")
        page.evaluate(_CLOSE_ALL)
        return bool(page.evaluate(_ARE_CLOSED))

    wait_until(is_empty, "the end of all that is open in the page")


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


# The colours alone: a change of the theme loads the light one anew, too, and is kept by the server.
_DARK_COLOURS = """async (isDark) => {
    let link = document.querySelector('link.dark-colours');
    if (!link) {
        link = Object.assign(document.createElement('link'), { rel: 'stylesheet', className: 'dark-colours' });
        link.href = '/lab/api/themes/@jupyterlab/theme-dark-extension/index.css';
        const loaded = new Promise((resolve, reject) => Object.assign(link, { onload: resolve, onerror: reject }));
        document.head.append(link);
        await loaded;
    }
    link.sheet.disabled = !isDark;
    document.body.dataset.jpThemeLight = String(!isDark);
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""


@contextmanager
def in_dark_colours(page: Any) -> Iterator[None]:
    """Show the page in the colours of the dark theme while the context lasts; JupyterLab does not know of it."""
    try:
        page.evaluate(_DARK_COLOURS, True)
        yield
    finally:
        page.evaluate(_DARK_COLOURS, False)


def pictures(page: Any, name: str) -> None:
    """Keep a picture of the page in each theme, where pictures are kept."""
    for theme in (LIGHT, DARK) if ARE_KEPT else ():
        with in_theme(page, theme):
            picture(page, f"{name}-{theme.split()[-1].lower()}")


def picture(page: Any, name: str) -> None:
    """Keep a picture of the page, where pictures are kept."""
    until_splash_gone(page)
    if not ARE_KEPT:
        return
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"{name}.png")

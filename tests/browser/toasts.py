"""Record of the toasts of JupyterLab, written as they come: on a loaded machine one is gone before a test looks."""

from __future__ import annotations

from typing import Any

_RECORD = """() => {
    window.toastObserver?.disconnect();
    const toasts = (window.toasts = new Map());
    window.toastObserver = new MutationObserver(() => {
        for (const toast of document.querySelectorAll('.Toastify__toast')) toasts.set(toast, toast.textContent);
    });
    window.toastObserver.observe(document.body, { childList: true, characterData: true, subtree: true });
}"""
_COUNT = "(text) => [...window.toasts.values()].filter((told) => told.includes(text)).length"
_PRESS = """([text, name]) => {
    const observer = new MutationObserver(() => {
        const toasts = [...document.querySelectorAll('.Toastify__toast')];
        const told = toasts.find((toast) => toast.textContent.includes(text));
        const button = [...(told?.querySelectorAll('button') ?? [])].find((each) => each.textContent.includes(name));
        if (!button) return;
        observer.disconnect();
        button.click();
    });
    observer.observe(document.body, { childList: true, subtree: true });
}"""


class Toasts:
    """The toasts of a page from now until it is loaded again."""

    def __init__(self, page: Any) -> None:
        self._page = page
        page.evaluate(_RECORD)

    def until_told(self, text: str) -> None:
        """Wait until one has told this."""
        self._page.wait_for_function(_COUNT, arg=text)

    def count(self, text: str) -> int:
        """Return how many have told this."""
        found: int = self._page.evaluate(_COUNT, text)
        return found

    def press(self, text: str, button: str) -> None:
        """Press a button of the next one that tells this, as soon as it comes."""
        self._page.evaluate(_PRESS, [text, button])

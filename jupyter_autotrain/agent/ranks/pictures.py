"""`display(...)` and `plt.show()` in a trial: pictures become files among its outputs, the rest becomes text."""

from __future__ import annotations

import base64
import io
import os
import re
import threading
from collections.abc import Callable, Mapping

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.ranks.reporter import Reporter
from jupyter_autotrain.agent.sizes import format_bytes

MOST_BYTES = 2_000_000
MOST_PICTURES = 200
MOST_TOTAL_BYTES = 100_000_000
_SUFFIXES = {"image/png": "png", "image/jpeg": "jpg", "image/svg+xml": "svg"}
_BEGINS = {"png": b"\x89PNG\r\n\x1a\n", "jpg": b"\xff\xd8\xff", "svg": b"<"}
_METHODS = {"image/png": "_repr_png_", "image/jpeg": "_repr_jpeg_", "image/svg+xml": "_repr_svg_"}
_SMALLER = (1.0, 0.5, 0.25)


class Pictures:
    """The pictures of one trial.

    Args:
        directory: The trial directory.
        reporter: Tells of each picture, and of those that were not kept.
    """

    def __init__(self, directory: str, reporter: Reporter) -> None:
        self._directory = directory
        self._reporter = reporter
        self._folder = f"{directory}/{wire.OUTPUTS}/pictures"
        self._kept = self._bytes = 0

    def display(self, *objects: object, **options: object) -> DisplayHandle | None:
        """Show objects as a notebook does, as far as a trial can; raise nothing into the training.

        Args:
            *objects: matplotlib figures, images, anything with `_repr_png_` and the like; others are printed.
            **options: Those of IPython's `display`; with `display_id` a handle is returned.
        """
        for shown in objects:
            try:
                self._display(shown)
            except Exception as error:  # noqa: BLE001 - an object may do anything when its picture is made
                self._reject(type(error).__name__, f"a {type(shown).__name__} could not be displayed: {error}")
        return DisplayHandle(self) if options.get("display_id") else None

    def figure(self, figure: object) -> None:
        """Keep a matplotlib figure as PNG, in a lower resolution when it is too big."""
        savefig = getattr(figure, "savefig")  # noqa: B009 - any figure
        dpi = float(getattr(figure, "dpi", 100.0))
        data = b""
        for factor in _SMALLER:
            buffer = io.BytesIO()
            savefig(buffer, format="png", dpi=dpi * factor, bbox_inches="tight")
            data = buffer.getvalue()
            if len(data) <= MOST_BYTES:
                break
        self._keep(data, "png")

    def _display(self, shown: object) -> None:
        if hasattr(shown, "savefig") and hasattr(shown, "canvas"):
            self.figure(shown)
        elif found := _picture(shown):
            self._keep(*found)
        else:
            print(_text(shown))  # noqa: T201 - the trial's own log

    def _keep(self, data: bytes, suffix: str) -> None:
        if len(data) > MOST_BYTES:
            size = format_bytes(len(data))
            self._reject("size", f"a picture of {size} was not kept: at most 2 MB; lower its size or dpi")
        elif self._kept >= MOST_PICTURES or self._bytes + len(data) > MOST_TOTAL_BYTES:
            self._reject("number", f"a picture was not kept: at most {MOST_PICTURES} of a trial are, 100 MB together")
        else:
            self._kept, self._bytes = self._kept + 1, self._bytes + len(data)
            name = self._write(data, suffix)
            self._reporter.note("picture", f"pictures/{name}")
            print(f"[picture: outputs/pictures/{name}]")  # noqa: T201 - the trial's own log

    def _write(self, data: bytes, suffix: str) -> str:
        """Write a file, whole or not at all, under a name that no other process of the trial takes."""
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        draft = f"{self._directory}/{wire.CONTROL}/picture.{os.getpid()}.{threading.get_ident()}"
        wire.write_atomically(draft, data)
        step = f"-step-{self._reporter.step}" if self._reporter.step >= 0 else ""
        order = self._kept
        while True:
            name = f"{order:04d}{step}.{suffix}"
            try:
                os.link(draft, f"{self._folder}/{name}")
            except FileExistsError:
                order += 1
            else:
                os.unlink(draft)
                return name

    def _reject(self, kind: str, text: str) -> None:
        self._reporter.invalid.add("picture", kind, text)


class DisplayHandle:
    """The handle that `display(..., display_id=True)` gives: `update` shows it again."""

    def __init__(self, pictures: Pictures) -> None:
        self._pictures = pictures

    def update(self, shown: object, **_: object) -> None:
        """Show the object in its new state, as a picture of its own."""
        self._pictures.display(shown)


def _picture(shown: object) -> tuple[bytes, str] | None:
    """Return the bytes of an object's picture and their kind; None when it has none."""
    if isinstance(shown, type):
        return None
    bundle = _bundle(shown)
    for mime_type, suffix in _SUFFIXES.items():
        data = _bytes(bundle.get(mime_type) or _called(shown, _METHODS[mime_type]), suffix)
        if data.lstrip()[:8].startswith(_BEGINS[suffix]):
            return data, suffix
    return None


def _bundle(shown: object) -> Mapping[str, object]:
    found = _called(shown, "_repr_mimebundle_")
    return found if isinstance(found, Mapping) else {}


def _called(shown: object, method: str) -> object:
    function: Callable[[], object] | None = getattr(shown, method, None)
    found = function() if callable(function) else None
    return found[0] if isinstance(found, tuple) and found else found  # the rest is metadata


def _bytes(data: object, suffix: str) -> bytes:
    if isinstance(data, (bytes, bytearray)):
        return bytes(data)
    if not isinstance(data, str):
        return b""
    return data.encode() if suffix == "svg" else base64.b64decode(data)


def _text(shown: object) -> str:
    """Return an object as text; of HTML only its words."""
    if isinstance(shown, str):
        return shown
    text = repr(shown)
    if not text.startswith("<IPython.core.display."):
        return text
    words = _called(shown, "_repr_html_") or _called(shown, "_repr_markdown_") or getattr(shown, "data", None) or text
    plain = re.sub(r"(?is)<(script|style)\b.*?(</\1>|$)", " ", str(words)[:100_000])
    import html  # noqa: PLC0415 - only trials that display HTML pay

    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", plain)).split())

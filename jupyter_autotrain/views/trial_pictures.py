"""Pictures that trials keep, in the live view and in the run card; never as markup of a trial's own."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.notes import Picture, announced_pictures, picture_of
from jupyter_autotrain.core.records import Note

_MOST_LISTED: Final = 60
_MOST_EMBEDDED: Final = 3
_WIDTHS_PX: Final = (320, 240, 160)
_COLORS: Final = 64
_TEXT_BYTES: Final = 1_000  # for the texts around the pictures


def listed(notes: Iterable[Note]) -> list[JsonValue]:
    """Return the newest pictures for a view: rows of trial, attempt, name and step, as they arrived."""
    pictures = announced_pictures(notes)[-_MOST_LISTED:]
    return [[picture.trial, picture.attempt, picture.name, picture.step] for picture in pictures]


def answer(home: Home, experiment_id: str, content: Mapping[str, Any]) -> tuple[dict[str, Any], bytes] | None:
    """Return the message and bytes that answer a view's request for a picture; None when it names none.

    The bytes are empty where the file no longer exists.
    """
    trial = content.get("trial")
    attempt = content.get("attempt")
    name = content.get("name")
    if not (isinstance(trial, int) and isinstance(attempt, int) and isinstance(name, str)):
        return None
    picture = picture_of(trial, attempt, name)
    if picture is None:
        return None
    data = picture.read(home.trial(experiment_id, trial, attempt))
    return {"kind": "picture", "trial": trial, "attempt": attempt, "name": name, "type": picture.mime_type}, data


def newest(notes: Iterable[Note], order: Sequence[int]) -> list[Picture]:
    """Return the pictures of the first trial in `order` that has any, its newest first."""
    pictures = announced_pictures(notes)
    for trial in order:
        found = [picture for picture in pictures if picture.trial == trial]
        if found:
            return found[::-1]
    return []


def embedded(pictures: Sequence[Picture], home: Home, experiment_id: str, budget_bytes: int) -> str:
    """Return HTML that holds the newest pictures as far as they fit; "" without any.

    They are smaller where that can be done here.
    """
    parts: list[str] = []
    left = budget_bytes - _TEXT_BYTES
    for picture in pictures[:_MOST_EMBEDDED]:
        data = picture.read(home.trial(experiment_id, picture.trial, picture.attempt))
        source = _source(picture, data, left)
        if source:
            parts.append(_figure(picture, source))
            left -= len(parts[-1].encode())
    return f'<div style="display:flex;flex-wrap:wrap;gap:8px">{"".join(parts)}</div>' if parts else ""


def _source(picture: Picture, data: bytes, most_bytes: int) -> str:
    """Return a picture as a data URI of at most `most_bytes`; "" when it does not fit.

    Scripts do not run in an image.
    """
    for width_px in (0, *_WIDTHS_PX):
        content = _smaller(picture, data, width_px) if width_px else data
        mime_type = "image/png" if width_px else picture.mime_type
        source = f"data:{mime_type};base64,{base64.b64encode(content).decode()}"
        if content and len(source) <= most_bytes - 200:
            return source
    return ""


def _smaller(picture: Picture, data: bytes, width_px: int) -> bytes:
    """Return the picture as a small PNG of few colours, or nothing where Pillow is not installed."""
    if picture.mime_type == "image/svg+xml" or not data:
        return b""
    try:
        from PIL import Image  # noqa: PLC0415 - wherever matplotlib is, but this package does not require it

        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image:
            small = image.convert("RGB")
    except Exception:  # noqa: BLE001 - a trial wrote the file: whatever its decoder raises, the card goes without it
        return b""
    small.thumbnail((width_px, width_px))
    out = io.BytesIO()
    small.quantize(_COLORS).save(out, "PNG", optimize=True)
    return out.getvalue()


def _figure(picture: Picture, source: str) -> str:
    title = escape(picture.title)
    image = f'<img src="{source}" alt="Picture of {title}" style="max-width:{_WIDTHS_PX[0]}px;background:#fff">'
    return f'<figure style="margin:4px 0">{image}<figcaption style="opacity:.7">{title}</figcaption></figure>'

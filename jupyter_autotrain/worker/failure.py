"""An exception in a cell, as its author wants to read it: the cell's line, no framework frames, a way out."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Sequence
from types import TracebackType

_PACKAGES = {
    "cv2": "opencv-python", "sklearn": "scikit-learn", "PIL": "pillow", "yaml": "pyyaml", "skimage": "scikit-image",
    "bs4": "beautifulsoup4", "dateutil": "python-dateutil", "torch_geometric": "torch-geometric", "attr": "attrs",
}  # fmt: skip
_LOWER = "Lower the batch size or the model size, or ask for more memory."


class Failure:
    """What is told of an exception: `kind` is exception, import or memory."""

    def __init__(self, error: BaseException, script: str, source_map: Sequence[str], python: str) -> None:
        frames = _user_frames(error.__traceback__, script)
        self.cell_line = _cell_line(frames, error, script, source_map)
        self.traceback = _text(error, frames)
        self.kind, advice = _advice(error, python)
        where = f" At {self.cell_line}." if self.cell_line else ""
        message = " ".join(str(error).split())
        self.reason = f"{type(error).__name__}: {_ended(message)}{where}{advice}".strip()

    def to_json(self) -> dict[str, str]:
        """The content of `outcome.json`."""
        return {
            "state": "FAILED",
            "kind": self.kind,
            "reason": self.reason,
            "traceback": self.traceback,
            "cell_line": self.cell_line,
        }


def _ended(message: str, most: int = 500) -> str:
    message = message if len(message) <= most else f"{message[: most - 3]}..."
    return message if not message or message.endswith((".", "!", "?")) else f"{message}."


def _user_frames(tb: TracebackType | None, script: str) -> traceback.StackSummary:
    """The frames from the cell's own code on."""
    frames = traceback.extract_tb(tb)
    first = next((i for i, frame in enumerate(frames) if frame.filename == script), len(frames))
    return traceback.StackSummary.from_list(frames[first:])


def _cell_line(frames: traceback.StackSummary, error: BaseException, script: str, source_map: Sequence[str]) -> str:
    """The last line of the user's cells that was being run: `cell 3, line 7: loss.backward()`."""
    numbers = [frame.lineno for frame in frames if frame.filename == script and frame.lineno]
    if isinstance(error, SyntaxError) and error.filename == script and error.lineno:
        numbers.append(error.lineno)
    if not numbers:
        return ""
    code = linecache.getline(script, numbers[-1]).strip()
    mapped = source_map[numbers[-1] - 1] if numbers[-1] <= len(source_map) else ""
    label, _, line = mapped.rpartition(":")
    place = f"{label}, line {line}" if label else f"line {numbers[-1]}"
    return f"{place}: {code}" if code else place


def _text(error: BaseException, frames: traceback.StackSummary) -> str:
    shown = traceback.TracebackException(type(error), error, None)
    shown.stack = frames
    if error.__cause__ is not None:
        shown.__cause__ = traceback.TracebackException.from_exception(error.__cause__)
    elif error.__context__ is not None and not error.__suppress_context__:
        shown.__context__ = traceback.TracebackException.from_exception(error.__context__)
    return "".join(shown.format())


def _advice(error: BaseException, python: str) -> tuple[str, str]:
    if isinstance(error, ModuleNotFoundError) and error.name:
        top = error.name.partition(".")[0]
        return "import", f" Install it where trials run: {python} -m pip install {_PACKAGES.get(top, top)}"
    if isinstance(error, ImportError):
        return (
            "import",
            f" The installed version may not fit; look with: {python} -m pip show -f {error.name or ''}".rstrip(),
        )
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        place = " Out of GPU memory." if "CUDA" in str(error) else " Out of memory."
        return "memory", f"{place} {_LOWER}"
    if isinstance(error, EOFError):
        return (
            "exception",
            " A trial runs in the background: input() and pdb have nobody to ask; `backend: debug` does.",
        )
    return "exception", ""

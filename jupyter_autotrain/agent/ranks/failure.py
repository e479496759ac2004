"""An exception in a cell, as its author wants to read it: the cell's line, no framework frames, a hint what to do.

The hint names a package to install, a file to send, or a way to use less memory.
"""

from __future__ import annotations

import json
import linecache
import os
import re
import traceback
from collections.abc import Iterator, Sequence
from types import TracebackType

_PACKAGES = {
    "cv2": "opencv-python", "sklearn": "scikit-learn", "PIL": "pillow", "yaml": "pyyaml", "skimage": "scikit-image",
    "bs4": "beautifulsoup4", "dateutil": "python-dateutil", "torch_geometric": "torch-geometric", "attr": "attrs",
}  # fmt: skip
_LOWER = "Lower the batch size or the model size, or ask for more memory."
_QUOTED = re.compile(r"(?<!\w)'([^'\n]{1,240})'|\"([^\"\n]{1,240})\"")
_LONGEST_CHAIN = 20


class Script:
    """The user's own code in a trial, and the names of its lines.

    Args:
        path: The path of the cell's script.
        source_map: For each line of the script "cell label:line", or "".
        work: The folder of the modules that came with it, or "".
        cwd: The notebook's folder, where it can be seen from here, or "".
    """

    def __init__(self, path: str, source_map: Sequence[str] = (), work: str = "", cwd: str = "") -> None:
        self.path = path
        self.source_map = source_map
        self.work = work
        self.cwd = cwd

    def owns(self, filename: str) -> bool:
        """Tell whether a file is the user's own."""
        return filename == self.path or (bool(self.work) and filename.startswith(f"{self.work}/"))

    def place(self, filename: str, number: int) -> str:
        """Name a line as users know it: `cell [3], line 7`; or `model.py, line 7` of a module beside the notebook."""
        if filename != self.path:
            return f"{filename.removeprefix(self.work).lstrip('/')}, line {number}"
        mapped = self.source_map[number - 1] if 0 < number <= len(self.source_map) else ""
        label, _, line = mapped.rpartition(":")
        return f"{label}, line {line}" if label else f"line {number}"


def script_of_bundle(path: str, bundle: str, work: str = "") -> Script:
    """Return the script of a bundle, with the facts of its `bundle.json`; without them where that cannot be read."""
    try:
        with open(f"{bundle}/bundle.json", encoding="utf-8") as file:
            known = json.load(file)
            return Script(path, list(known.get("source_map", ())), work, str(known.get("cwd", "")))
    except (OSError, ValueError):
        return Script(path, work=work)


class Failure:
    """A failure as it is reported: `kind` is exception, import or memory.

    Args:
        error: The exception that left the cell.
        script: The user's code.
        python: The interpreter.
        step: The step that was reported last, or -1.
    """

    def __init__(self, error: BaseException, script: Script, python: str, step: int = -1) -> None:
        frames = _user_frames(error.__traceback__, script)
        lines = _own_lines(frames, error, script)
        self.cell_line = next((_quoted(*line, script) for line in reversed(lines) if line[0] == script.path), "")
        self.traceback = _text(error, frames)
        chain = _chain(error)
        self.kind, way_out = advise(chain, python, script.work, script.cwd)
        cause = f" (caused by {_named(chain[-1], 200)})" if len(chain) > 1 else ""
        where = _where(lines, step, script)
        self.reason = f"{_ended(_named(error, 500) + cause)}{where}{way_out}".strip()
        self._without_values = f"{type(error).__name__}.{where} What it says stays at its place: see stderr there."

    def to_json(self) -> dict[str, str]:
        """Return the content for `outcome.write`."""
        return {
            "state": "FAILED",
            "kind": self.kind,
            "reason": self.reason,
            "traceback": self.traceback,
            "cell_line": self.cell_line,
        }

    def without_values(self) -> dict[str, str]:
        """Return the same without anything that the exception says, which may quote data."""
        return {**self.to_json(), "reason": self._without_values, "traceback": ""}


def _named(error: BaseException, most: int) -> str:
    message = " ".join(str(error).split())
    message = message if len(message) <= most else f"{message[: most - 3]}..."
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."


def _chain(error: BaseException) -> list[BaseException]:
    """Return the exception, its cause, the cause of that, and so on to the end; of a group the first member counts."""
    chain = [error]
    while len(chain) < _LONGEST_CHAIN:
        cause = _cause(chain[-1])
        if cause is None or cause in chain:
            break
        chain.append(cause)
    return chain


def _cause(error: BaseException) -> BaseException | None:
    if error.__cause__ is not None:
        return error.__cause__
    members = getattr(error, "exceptions", ())  # those of an ExceptionGroup, which Python has from 3.11 on
    if isinstance(members, tuple) and members and isinstance(members[0], BaseException):
        return members[0]
    return None if error.__suppress_context__ else error.__context__


def _user_frames(tb: TracebackType | None, script: Script) -> traceback.StackSummary:
    """Return the frames from the cell's own code on."""
    frames = traceback.extract_tb(tb)
    first = next((i for i, frame in enumerate(frames) if frame.filename == script.path), len(frames))
    return traceback.StackSummary.from_list(frames[first:])


def _own_lines(frames: traceback.StackSummary, error: BaseException, script: Script) -> list[tuple[str, int]]:
    """Return the file and line of the user's own frames, outermost first."""
    lines = [(frame.filename, frame.lineno or 0) for frame in frames if script.owns(frame.filename)]
    if isinstance(error, SyntaxError) and error.filename and script.owns(error.filename) and error.lineno:
        lines.append((error.filename, error.lineno))
    return lines


def _quoted(filename: str, number: int, script: Script, quote: str = "") -> str:
    """Quote a line with its place: `cell [3], line 7: loss.backward()`."""
    code = linecache.getline(filename, number).strip()
    place = script.place(filename, number)
    return f"{place}: {quote}{code}{quote}" if code else place


def _where(lines: Sequence[tuple[str, int]], step: int, script: Script) -> str:
    """Return the place of the failure, for its reason.

    It names the last line of the user's own code, the cell's line that called it where that is another one, and the
    last step.
    """
    parts = []
    if lines:
        last = script.place(*lines[-1])
        first = script.place(*lines[0])
        parts.append(f"at {_quoted(*lines[-1], script, '`')}")
        same = last.rpartition(", ")[0] == first.rpartition(", ")[0]
        if last != first:
            parts.append(f"called from {first.rpartition(', ')[2] if same else first}")
    if step >= 0:
        parts.append(f"after step {step}")
    text = ", ".join(parts)
    return f" {text[0].upper()}{text[1:]}." if text else ""


def _text(error: BaseException, frames: traceback.StackSummary) -> str:
    shown = traceback.TracebackException(type(error), error, None)
    shown.stack = frames
    if error.__cause__ is not None:
        shown.__cause__ = traceback.TracebackException.from_exception(error.__cause__)
    elif error.__context__ is not None and not error.__suppress_context__:
        shown.__context__ = traceback.TracebackException.from_exception(error.__context__)
    return "".join(shown.format())


def advise(chain: Sequence[BaseException], python: str, work: str, cwd: str) -> tuple[str, str]:
    """Return the kind of a failure (exception, import or memory), and a way out, or "".

    Args:
        chain: The exception, what caused it, and so on to the end.
        python: The interpreter.
        work: The folder that the trial runs in, or "".
        cwd: The notebook's folder, or "" where it is not known.
    """
    error = chain[0]
    module = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if module:
        return "import", _beside(
            module, cwd
        ) or f" Install it where trials run: {python} -m pip install {_brought(module)}"
    if isinstance(error, ImportError):
        look = f" The installed version may not fit; look with: {python} -m pip show -f {error.name or ''}"
        return "import", look.rstrip()
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        place = " Out of GPU memory." if "CUDA" in str(error) else " Out of memory."
        return "memory", f"{place} {_LOWER}"
    if isinstance(error, EOFError):
        return (
            "exception",
            " A trial runs in the background: input() and pdb cannot read input; with `backend: debug` they can.",
        )
    return "exception", _not_shipped(chain, work, cwd)


def _brought(module: str) -> str:
    return _PACKAGES.get(module, module)


def _beside(module: str, cwd: str) -> str:
    """Return the advice to send a module that lies beside the notebook; "" for one that does not."""
    names = [f"{module}.py", f"{module}/"]
    found = next((name for name in names if cwd and os.path.exists(f"{cwd}/{name}")), "")
    return _ship(found.rstrip("/")) if found else ""


def _not_shipped(chain: Sequence[BaseException], work: str, cwd: str) -> str:
    """Return the `ship:` line for a file that is missing here; one seen beside the notebook goes before a guess."""
    missing = [place for error in chain for path in _paths(error) if (place := _place(path, work))]
    beside = [place for place in missing if cwd and os.path.exists(f"{cwd}/{place}")]
    if beside:
        return _ship(beside[0])
    if missing and not os.path.isdir(cwd) and any(isinstance(error, FileNotFoundError) for error in chain):
        return f" If it lies beside the notebook, add to the header: `ship: [{_listed(missing[0])}]`"
    return ""


def _place(path: str, work: str) -> str:
    """Return a path that is missing here, relative to the folder the trial runs in.

    The result is "" for a path that is there or lies outside.
    """
    there = os.path.normpath(os.path.join(work, path))
    return os.path.relpath(there, work) if there.startswith(f"{work}/") and not os.path.exists(there) else ""


def _paths(error: BaseException) -> Iterator[str]:
    """Yield the paths that an exception may be about; in words of libraries only texts that look like one."""
    if isinstance(error, OSError):
        for name in (error.filename, error.filename2):
            if isinstance(name, str) and name:
                yield name
    if isinstance(error, (OSError, ValueError, RuntimeError)):
        quoted = (single or double for single, double in _QUOTED.findall(str(error)[:2000]))
        for text in quoted:
            if "." in text or "/" in text:
                yield text


def _ship(place: str) -> str:
    return f" {place} lies beside the notebook but was not sent: add to the header `ship: [{_listed(place)}]`"


def _listed(place: str) -> str:
    """Return a path as an item of a YAML list."""
    return place if re.fullmatch(r"[\w./-]+", place) else "'" + place.replace("'", "''") + "'"

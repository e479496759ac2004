"""What helps after an exception in a cell: a package to install, a file to send, less memory to use."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

_PACKAGES = {
    "cv2": "opencv-python", "sklearn": "scikit-learn", "PIL": "pillow", "yaml": "pyyaml", "skimage": "scikit-image",
    "bs4": "beautifulsoup4", "dateutil": "python-dateutil", "torch_geometric": "torch-geometric", "attr": "attrs",
}  # fmt: skip
_LOWER = "Lower the batch size or the model size, or ask for more memory."
_QUOTED = re.compile(r"(?<!\w)'([^'\n]{1,240})'|\"([^\"\n]{1,240})\"")


def advise(chain: Sequence[BaseException], python: str, work: str, cwd: str) -> tuple[str, str]:
    """The kind of a failure (exception, import or memory), and a way out, or "".

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
    """A module that lies beside the notebook is sent, not installed."""
    names = [f"{module}.py", f"{module}/"]
    found = next((name for name in names if cwd and os.path.exists(f"{cwd}/{name}")), "")
    return _ship(found.rstrip("/")) if found else ""


def _not_shipped(chain: Sequence[BaseException], work: str, cwd: str) -> str:
    """The `ship:` line for a file that is missing here; one seen beside the notebook goes before a guess."""
    missing = [place for error in chain for path in _paths(error) if (place := _place(path, work))]
    beside = [place for place in missing if cwd and os.path.exists(f"{cwd}/{place}")]
    if beside:
        return _ship(beside[0])
    if missing and not os.path.isdir(cwd) and any(isinstance(error, FileNotFoundError) for error in chain):
        return f" If it lies beside the notebook, add to the header: `ship: [{_listed(missing[0])}]`"
    return ""


def _place(path: str, work: str) -> str:
    """A path that is missing here, relative to the folder the trial runs in; "" when it is there or lies outside."""
    there = os.path.normpath(os.path.join(work, path))
    return os.path.relpath(there, work) if there.startswith(f"{work}/") and not os.path.exists(there) else ""


def _paths(error: BaseException) -> Iterator[str]:
    """The paths that an exception may be about; in words of libraries only what looks like one."""
    if isinstance(error, OSError):
        yield from (name for name in (error.filename, error.filename2) if isinstance(name, str) and name)
    if isinstance(error, (OSError, ValueError, RuntimeError)):
        quoted = (single or double for single, double in _QUOTED.findall(str(error)[:2000]))
        yield from (text for text in quoted if "." in text or "/" in text)


def _ship(place: str) -> str:
    return f" {place} lies beside the notebook but was not sent: add to the header `ship: [{_listed(place)}]`"


def _listed(place: str) -> str:
    """A path as an item of a YAML list."""
    return place if re.fullmatch(r"[\w./-]+", place) else "'" + place.replace("'", "''") + "'"

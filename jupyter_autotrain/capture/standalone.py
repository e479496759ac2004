"""A replacement of the trial API in an exported script, where nothing of jupyter_autotrain is installed.

The text of this file is copied into every exported script and runs there as a module of its own, so that a cell's
own names, `print = ...` even, do not reach it. Standard library only.
"""

import base64
import json
import math
import os
import pickle
import sys
import types
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path


class Params(dict[str, object]):
    """The parameters: `params.lr` and `params["lr"]` are the same."""

    def __getattr__(self, name: str) -> object:
        if name not in self:
            raise AttributeError(f"no parameter {name!r}; there are: {', '.join(self) or 'none'}")
        value = self[name]
        return Params(value) if type(value) is dict else value


class Report:
    """A report that prints metrics and writes them to `metrics.jsonl`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.step = -1

    def __call__(self, step: int | None = None, **metrics: object) -> None:
        """Report metrics."""
        self.step = self.step + 1 if step is None else int(step)
        values = {name: _number(value) for name, value in metrics.items()}
        sys.stdout.write(f"step {self.step}: {' '.join(f'{name}={value}' for name, value in values.items())}\n")
        finite = {name: value if math.isfinite(value) else None for name, value in values.items()}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": self.step, **finite}) + "\n")


class Checkpoint:
    """A checkpoint that saves and loads the state of a run in `checkpoints/`."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder)
        self._saved = -1

    def save(self, obj: object, step: int | None = None) -> str:
        """Save an object by pickle, and return the file's path."""
        self._saved = self._saved + 1 if step is None else int(step)
        path = Path(self.path, f"step-{self._saved:012d}.pkl")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(pickle.dumps(obj))
        return str(path)

    def load(self, default: object = None) -> object:
        """Give the newest saved object, or `default`."""
        newest = max(Path(self.path).glob("step-*.pkl"), default=None)
        if newest is None:
            return default
        found: object = pickle.loads(newest.read_bytes())  # noqa: S301 - an earlier run of this script wrote it
        return found


def fix_hash_order(hash_seed: str) -> None:
    """Start this script once more with `PYTHONHASHSEED`, which has no effect on a Python that runs already."""
    if os.environ.get("PYTHONHASHSEED") == hash_seed and not sys.flags.ignore_environment:
        return
    if sys.flags.ignore_environment or sys.orig_argv[-len(sys.argv) :] != sys.argv:
        sys.stderr.write(f"The order of sets may differ from the trial's: it ran with PYTHONHASHSEED={hash_seed}.\n")
        return
    os.environ["PYTHONHASHSEED"] = hash_seed
    sys.stdout.flush()
    os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - the same command again


def start(given: Mapping[str, object], data: Mapping[str, str], files: Mapping[str, str]) -> dict[str, object]:
    """Give the names that a cell finds in a trial.

    Args:
        given: The parameters.
        data: Captured variables: name -> packed pickle.
        files: Files that travel: name -> packed content; a name that ends with a slash is that of a folder.
    """
    here = Path.cwd()
    params = Params(given)
    members = {
        "params": params,
        "report": Report(here / "metrics.jsonl"),
        "checkpoint": Checkpoint(here / "checkpoints"),
        "should_stop": lambda: False,
        "display": print,
        "rank": int(os.environ.get("RANK", "0")),
        "world_size": int(os.environ.get("WORLD_SIZE", "1")),
    }
    trial = types.ModuleType("jupyter_autotrain")
    vars(trial).update(members, hints=lambda **_: None)
    sys.modules.setdefault(trial.__name__, trial)  # for `import jupyter_autotrain as at; at.report(...)`
    return {
        **{name: value for name, value in params.items() if name.isidentifier()},
        **members,
        "trial": trial,
        "__autotrain_data__": lambda name: pickle.loads(_unpack(data[name])),  # noqa: S301 - written by the export
        "__autotrain_override__": _override(params),
        "__autotrain_params__": params,
        "__autotrain_file__": str(here / "main.py"),
        "__autotrain_files__": _lay_out(files, here),
    }


def add_data(names: dict[str, object], places: Mapping[str, tuple[str, str, str]]) -> None:
    """Add `data` to the names of a cell.

    Args:
        names: The names, as `start` gives them.
        places: Of each entry its path, and of one that is fetched its URL and SHA-256.
    """
    paths = {name: str(_fetched(*place) if place[1] else Path(place[0]).expanduser()) for name, place in places.items()}
    names["data"] = types.SimpleNamespace(**{name: Path(path) for name, path in paths.items()})
    vars(names["trial"])["data"] = names["data"]


def _fetched(path: str, url: str, sha256: str) -> Path:
    import hashlib  # noqa: PLC0415 - only scripts with a URL pay
    import urllib.request  # noqa: PLC0415 - as above

    target = Path(path).absolute()
    if not target.exists():
        draft = target.with_name(f"{target.name}.part")
        urllib.request.urlretrieve(url, draft)  # noqa: S310 - the header names it
        with draft.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != sha256:
            raise SystemExit(f"{url} has the SHA-256 {found}, not {sha256}")
        draft.replace(target)
    return target


def _lay_out(files: Mapping[str, str], here: Path) -> object:
    """Put modules where they can be imported and data files where the cell looks for them; never over another file."""
    if not files:
        return None
    import tempfile  # noqa: PLC0415 - only scripts with files pay

    folder = tempfile.TemporaryDirectory(prefix="autotrain-")
    sys.path.insert(0, folder.name)
    for name, text in files.items():
        if name.endswith("/"):
            (here / name).mkdir(parents=True, exist_ok=True)
            continue
        places = [Path(folder.name, name)] if name.endswith(".py") else [Path(folder.name, name), here / name]
        for place in places:
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(_unpack(text))
    return folder


def _override(params: Mapping[str, object]) -> Callable[[str, object], object]:
    def override(name: str, literal: object) -> object:
        value = params.get(name, literal)
        if value != literal:
            sys.stdout.write(f"{name} = {literal!r} in the cell; this run uses {value!r} (search)\n")
        return value

    return override


def _unpack(text: str) -> bytes:
    return zlib.decompress(base64.b85decode(text))


def _number(value: object) -> int | float:
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, int) else float(value)  # type: ignore[arg-type]  # what has no float() fails here

"""The files of a trial: the modules it imports, the files its code opens, and those that `ship:` names."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from jupyter_autotrain.capture.files import data_files, modules, ship
from jupyter_autotrain.capture.files.data_files import RequiredFiles
from jupyter_autotrain.capture.files.ignore import IgnoreRules
from jupyter_autotrain.capture.files.path_texts import PathReader, TrialCode
from jupyter_autotrain.core.spec import DATA, TRIAL, CapturedName
from jupyter_autotrain.errors import ShipError

_ADD_A_ROOT = frozenset({"sys.path.append", "sys.path.insert"})


def find(code: TrialCode, imported: Iterable[str], folder: Path, patterns: Sequence[str]) -> RequiredFiles:
    """Find the files that travel.

    Args:
        code: What runs in a trial.
        imported: Modules that pickles refer to.
        folder: The notebook's folder.
        patterns: Those of `ship:`; one that begins with `!` names files that stay here.

    Raises:
        ShipError: A pattern fits nothing, a module has no file, or the code opens what lies outside the folder by a
            relative path.
    """
    ignore = IgnoreRules(folder, [pattern[1:] for pattern in patterns if pattern.startswith("!")])
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
    script = PathReader(code.script.tree, code)
    added = [call for call in script.calls if call.args and ast.unparse(call.func) in _ADD_A_ROOT]
    roots = [folder / text for call in added if (text := script.known(call.args[-1]))]
    local = modules.local_files(modules.imported(code.script.tree).union(imported), folder, ignore, roots)
    _check_there(local.values())
    found = data_files.find(script, code, local, folder, ignore, named=bool(wanted))
    found.add(local, "import")
    found.add(ship.globbed(wanted, folder, ignore), "ship:")
    return found


def _check_there(files: Iterable[Path]) -> None:
    if (gone := next((path for path in files if not path.is_file()), None)) is not None:
        raise ShipError(
            f"A module that this kernel has imported is no longer a file, or is in an archive: {gone}.",
            "Modules beside the notebook travel as files.",
            "Write the file again, unpack the archive, or restart the kernel.",
        )


def staying(paths: Iterable[str], folder: Path) -> Iterator[str]:
    """Yield the patterns that keep files of `data:` below the notebook's folder from being sent with the code."""
    for path in paths:
        place = Path(os.path.abspath(folder / Path(path).expanduser()))  # noqa: PTH100 - links keep their names
        if path and place != folder and place.is_relative_to(folder):
            yield f"!/{place.relative_to(folder).as_posix()}"


def elsewhere(data: Iterable[str]) -> dict[str, object]:
    """Return the stand-ins here for `data` and `trial` of a cell.

    They are paths outside of the notebook's folder.
    """
    paths = {name: f"/data/{name}" for name in data}
    return {DATA: paths, TRIAL: {DATA: paths}} if paths else {}


def rows(found: RequiredFiles) -> list[CapturedName]:
    """Return the rows of the capture table: each file with the line that names it, and its size."""
    return [
        CapturedName(relative_path, "file", found.origins.get(relative_path, ""), path.stat().st_size)
        for relative_path, path in sorted(found.files.items())
    ]

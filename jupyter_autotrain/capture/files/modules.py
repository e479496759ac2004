"""Modules that are not installed but lie beside the notebook: they travel as files, with what they import."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import PathFinder
from pathlib import Path

from jupyter_autotrain.capture.files.ignore import IgnoreRules
from jupyter_autotrain.capture.installed import module_folders
from jupyter_autotrain.capture.syntax.nodes import called

_NEVER = frozenset({"", "__main__", "jupyter_autotrain", *sys.builtin_module_names})


def imported(tree: ast.AST, package: str = "") -> set[str]:
    """Return the dotted names of all modules that some code imports, inside functions too."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            names.update([base, *(f"{base}.{alias.name}" for alias in node.names)] if base else [])
        elif isinstance(node, ast.Call):
            names.update(_by_call(node))
    return names


def _by_call(call: ast.Call) -> list[str]:
    """Return the module that `import_module("helpers")` names."""
    is_import = called(call) in {"__import__", "import_module"} and call.args
    return [str(call.args[0].value)] if is_import and isinstance(call.args[0], ast.Constant) else []


def local_files(names: Iterable[str], folder: Path, ignore: IgnoreRules, roots: Sequence[Path] = ()) -> dict[str, Path]:
    """Return the files of all modules among `names`, and of those they import.

    Modules that an installation brings are left out.

    Args:
        names: Dotted module names.
        folder: The notebook's folder, searched first.
        ignore: Files that stay here.
        roots: Folders that the code itself adds to `sys.path`.

    Returns:
        Place relative to the import root -> the file here. A package travels whole.
    """
    finder = _Finder([folder, *roots, *(Path(entry or folder) for entry in sys.path)])
    files: dict[str, Path] = {}
    seen = set[str]()
    todo = sorted({name.partition(".")[0] for name in names})
    while todo:
        top = todo.pop()
        if top in seen:
            continue
        seen.add(top)
        for relative_path, path in finder.files_of(top):
            if ignore(relative_path):
                continue
            files[relative_path] = path
            todo += sorted({name.partition(".")[0] for name in imports_of(path, relative_path)} - seen)
    return files


class _Finder:
    """A finder of the top-level modules that are the user's own."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self.folder = roots[0]
        self.roots = list(dict.fromkeys(roots))
        self.installed = [*module_folders(), Path(sys.prefix), Path(sys.base_prefix)]

    def files_of(self, top: str) -> Iterator[tuple[str, Path]]:
        """Yield each file of a module or package, by its path relative to the import root."""
        origin = None if top in sys.stdlib_module_names or top in _NEVER else self._origin(top)
        if origin is None or self._is_installed(origin):
            return
        if not origin.is_dir():
            yield origin.name, origin
            return
        # A folder without __init__.py is one of code by chance: what else lies in it is not its own.
        pattern = "*" if (origin / "__init__.py").is_file() else "*.py"
        for path in sorted(origin.rglob(pattern)):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(origin.parent).as_posix(), path

    def _origin(self, top: str) -> Path | None:
        """Return the file of the module as it is loaded, else the first on the search path; of a package its folder."""
        loaded = sys.modules.get(top)
        file = getattr(loaded, "__file__", None)
        if not file or getattr(loaded, "__name__", "") != top:
            file = self._found(top)
        if not file:
            return None
        path = Path(file)
        return path.parent if path.name.startswith("__init__.") else path

    def _found(self, top: str) -> str | None:
        importlib.invalidate_caches()
        spec = PathFinder.find_spec(top, list(map(str, self.roots)))
        if spec is None:
            return None
        folders = spec.submodule_search_locations or ()
        return spec.origin or next((folder for folder in folders if _holds_code(Path(folder))), None)

    def _is_installed(self, path: Path) -> bool:
        if {"site-packages", "dist-packages"} & set(path.parts):
            return True
        if any(map(path.is_relative_to, self.installed)):
            return True
        return not path.is_relative_to(self.folder) and _holds_installed(path.parent)


def _holds_code(folder: Path) -> bool:
    """Tell whether a folder is a package without `__init__.py`, itself or by a folder in it."""
    try:
        return folder.is_dir() and any(any(folder.glob(pattern)) for pattern in ("*.py", "*/*.py"))
    except OSError:
        return False


def _holds_installed(root: Path) -> bool:
    """Tell whether packages were installed into a folder, as `pip install --target` does.

    Trials find such a folder in the same way as this kernel.
    """
    return any(root.glob("*.dist-info")) or any(root.glob("*.egg-info/installed-files.txt"))


def imports_of(path: Path, relative_path: str) -> set[str]:
    """Return the dotted names of all modules that a file of Python imports; none of any other file."""
    if path.suffix != ".py":
        return set()
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return set()  # it would fail to import here too
    return imported(tree, ".".join(Path(relative_path).parent.parts))


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".") if package else []
    base = parts[: len(parts) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])

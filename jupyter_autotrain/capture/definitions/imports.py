"""Import lines for names that come from modules."""

from __future__ import annotations

import ast
import builtins
import sys
import types
from dataclasses import dataclass

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.syntax.history import Binding, History, is_literal
from jupyter_autotrain.capture.syntax.scopes import imported_name


@dataclass(frozen=True, slots=True)
class ImportLine:
    """Statements that bind a name to what a module holds.

    Attributes:
        text: The statements.
        binding: The cell's statement they come from, if any.
        whole: True when `text` is that statement unchanged, such as `try: import a; except ImportError: a = None`.
    """

    text: str
    binding: Binding | None = None
    whole: bool = False


def find(name: str, value: object, history: History) -> ImportLine | None:
    """Return the import of `value` as `name`.

    It is None when the value comes from no module that others can import.
    """
    last = history.last(name)
    if last is not None and (line := _as_written(name, value, last, history)):
        return line
    if looking.is_kind(value, types.ModuleType):
        return _module_line(name, value)  # type: ignore[arg-type]  # it is one
    return _member_line(name, value)


def is_importable(module: types.ModuleType) -> bool:
    """Tell whether another process can import a module.

    It cannot import one that was made in memory; each process has its own `__main__`.
    """
    if module.__name__ == "__main__":
        return True
    if not _stands_for(sys.modules.get(module.__name__), module):
        return False
    return module.__spec__ is not None or bool(getattr(module, "__file__", None))


def _stands_for(listed: types.ModuleType | None, value: object) -> bool:
    """Tell whether a listed module is some value, or of the same file: lazy packages put another in their place."""
    if listed is value or not looking.is_kind(value, types.ModuleType) or listed is None:
        return listed is value
    file = looking.attribute(value, "__file__")
    return bool(file) and looking.attribute(listed, "__file__") == file


def _as_written(name: str, value: object, last: Binding, history: History) -> ImportLine | None:
    """Return the cell's own import; a conditional one is kept whole."""
    if last.outer is not last.node and only_imports(last.outer):
        text = ast.get_source_segment(last.text, last.outer) or ast.unparse(last.outer)
        return ImportLine(text, last, whole=True)
    if isinstance(last.node, ast.ImportFrom) and not last.node.level:
        return _from_line(name, value, last.node, last)
    if isinstance(last.node, ast.Import):
        return _import_lines(name, value, last, history)
    return None


def _from_line(name: str, value: object, node: ast.ImportFrom, last: Binding) -> ImportLine | None:
    members = {alias.asname or alias.name: alias.name for alias in node.names}
    member = members.get(name, name if "*" in members else "")
    module = sys.modules.get(node.module or "")
    if not member or module is None or looking.attribute(module, member) is not value:
        return None
    return ImportLine(f"from {node.module} import {_renamed(member, name)}", last)


def _import_lines(name: str, value: object, last: Binding, history: History) -> ImportLine | None:
    """Return `import a`, with every `import a.b` of the notebook.

    These add to the content of `a`.
    """
    lines: dict[str, None] = {}
    for binding in history.bindings(name):
        for alias in binding.node.names if isinstance(binding.node, ast.Import) else ():
            target = sys.modules.get(alias.name if alias.asname else name)
            if imported_name(alias) == name and _stands_for(target, value) and alias.name in sys.modules:
                lines[f"import {_renamed(alias.name, alias.asname or alias.name)}"] = None
    return ImportLine("\n".join(lines), last) if lines else None


def _module_line(name: str, module: types.ModuleType) -> ImportLine | None:
    if not is_importable(module):
        return None
    package, _, member = module.__name__.rpartition(".")
    if package and member == name:
        return ImportLine(f"from {package} import {member}")
    return ImportLine(f"import {_renamed(module.__name__, name)}")


def _member_line(name: str, value: object) -> ImportLine | None:
    """Return the import of a function or class by the module that defines it."""
    path = looking.attribute(value, "__module__")
    member = looking.attribute(value, "__qualname__")
    if not isinstance(path, str) or not isinstance(member, str):
        return None
    module = sys.modules.get(path)
    if module is None or path == "__main__" or looking.attribute(module, member) is not value:
        return None
    if path == builtins.__name__:
        return ImportLine(f"from builtins import {_renamed(member, name)}")
    return ImportLine(f"from {path} import {_renamed(member, name)}")


def _renamed(path: str, name: str) -> str:
    return path if path == name else f"{path} as {name}"


def only_imports(statement: ast.stmt) -> bool:
    """Tell whether a statement does nothing but import, or note which import worked."""
    if isinstance(statement, ast.Import | ast.ImportFrom | ast.Pass):
        return True
    if isinstance(statement, ast.Assign):
        return is_literal(statement.value)
    if isinstance(statement, ast.If):
        return all(map(only_imports, [*statement.body, *statement.orelse]))
    if isinstance(statement, ast.Try):
        bodies = [statement.body, statement.orelse, statement.finalbody, *(h.body for h in statement.handlers)]
        return all(only_imports(part) for body in bodies for part in body)
    return False

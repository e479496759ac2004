"""IPython's own syntax: the lines of a text that are no Python, read as magics, shell lines and questions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE = re.compile(r"^\s*(?:%{1,2}\w|!|\?)|^\s*[\w\s,.*\[\]'\"]+=\s*[%!]|\?\s*$")
_ASSIGNED = re.compile(r"(?P<target>[^=!%?]+?)\s*=\s*(?P<rest>[%!].*)", re.DOTALL)
_NAMED = re.compile(r"(?P<escape>%{1,2})(?P<name>\w+)\s*(?P<argument>.*)", re.DOTALL)
_SHELL_MAGICS = frozenset({"sc", "sx", "system"})
_IPYTHON_CALLS = frozenset({"getoutput", "magic", "run_cell_magic", "run_line_magic", "system"})
SHELL = "!"
HELP = "?"


@dataclass(frozen=True, slots=True)
class Magic:
    """A line of IPython's syntax, or a call that means the same.

    Attributes:
        name: The magic's name, `!` for a shell line, `?` for a question.
        argument: What follows the name.
        target: What its result is assigned to, or "".
        is_cell: True for `%%name`, which takes the lines below too.
        index: Its first line in the text, from 0.
        written: As it is written.
    """

    name: str
    argument: str
    target: str = ""
    is_cell: bool = False
    index: int = 0
    written: str = ""


def read(written: str, index: int = 0) -> Magic:
    """Read one line."""
    text = written.strip().replace("\\\n", " ")
    target = ""
    if found := _ASSIGNED.fullmatch(text):
        target = found["target"].strip()
        text = found["rest"]
    if text.startswith("!"):
        return Magic(SHELL, text.lstrip("!").strip(), target, False, index, written.strip())
    named = _NAMED.fullmatch(text)
    if named is None or text.endswith("?"):
        return Magic(HELP, text.strip("? "), target, False, index, written.strip())
    name = SHELL if named["name"] in _SHELL_MAGICS else named["name"]
    return Magic(name, named["argument"].strip(), target, named["escape"] == "%%", index, written.strip())


def set_aside(source: str) -> tuple[str, list[Magic]]:
    """Replace each line of IPython's syntax by `pass`: the text as Python, with the same lines, and what was there.

    Only a line that stops the parser counts: `% b` may well continue an expression, and text may hold anything.

    Raises:
        SyntaxError: The rest is no Python.
        ValueError: The same, such as a text with zero bytes.
    """
    lines = source.split("\n")
    magics = list[Magic]()
    while True:
        text = "\n".join(lines) + "\n"
        try:
            ast.parse(text)
        except SyntaxError as error:
            index = _before(lines, (error.lineno or 1) - 1)
            if index is None:
                raise
            magics.append(read(_blank(lines, index, "pass"), index))
        else:
            return text, sorted(magics, key=lambda magic: magic.index)


def replace(text: str, index: int, code: str) -> str:
    """Put code where `set_aside` has left `pass`."""
    lines = text.split("\n")
    lines[index] = lines[index].replace("pass", code, 1)
    return "\n".join(lines)


def calls(tree: ast.Module) -> Iterator[tuple[ast.stmt, Magic]]:
    """Yield statements such as `get_ipython().system('ls')`, read as magics.

    Converted notebooks have them.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr | ast.Assign) and isinstance(node.value, ast.Call):
            arguments = _of_ipython(node.value)
            if arguments:
                target = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else ""
                yield node, _from_call(arguments, target, node)


def _of_ipython(call: ast.Call) -> list[str]:
    """Return the method and the texts of a call `get_ipython().METHOD(TEXT, ...)`.

    The list is empty for any other call.
    """
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in _IPYTHON_CALLS:
        return []
    owner = function.value
    if not (isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "get_ipython"):
        return []
    texts = [part.value for part in call.args if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return [function.attr, *texts] if len(texts) == len(call.args) > 0 else []


def _from_call(arguments: list[str], target: str, node: ast.stmt) -> Magic:
    method, first, *rest = arguments
    index = node.lineno - 1
    written = ast.unparse(node).partition("\n")[0]
    if method in {"system", "getoutput"}:
        return Magic(SHELL, first, target, False, index, written)
    if method == "magic":
        first, _, argument = first.strip().lstrip("%").partition(" ")
        return Magic(first, argument.strip(), target, False, index, written)
    return Magic(first, rest[0].strip() if rest else "", target, method == "run_cell_magic", index, written)


def _before(lines: list[str], index: int) -> int | None:
    candidates = (at for at in range(min(index, len(lines) - 1), -1, -1) if _LINE.search(lines[at]))
    return next(candidates, None)


def _blank(lines: list[str], index: int, code: str) -> str:
    """Replace a line, and the lines that continue it; return the text that stood there."""
    written = [lines[index]]
    indent = lines[index][: len(lines[index]) - len(lines[index].lstrip())]
    lines[index] = f"{indent}{code}"
    while written[-1].endswith("\\") and (index := index + 1) < len(lines):
        written.append(lines[index])
        lines[index] = ""
    return "\n".join(written)

"""The notebook's executed cells as Python: IPython's own syntax is set aside, line numbers stay."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from jupyter_autotrain.errors import CaptureError

_MAGIC = re.compile(r"^\s*(?:%{1,2}\w|!|\?)|^\s*[\w\s,.*\[\]]+=\s*[%!]|\?\s*$")
_ONLY_HERE = re.compile(r"^\s*%(?:matplotlib|config\s+InlineBackend|(?:re)?load_ext\s+autoreload|autoreload)\b")
_CELL_MAGIC = re.compile(r"^%%(\w+)")
_TRANSFORMED = "get_ipython().run_cell_magic("
_RUNS_ITS_BODY_HERE = frozenset({"capture", "prun", "time"})
_SHOWN_MAGICS = 3


@dataclass(frozen=True, slots=True)
class Cell:
    """One executed cell.

    Attributes:
        number: Its execution number, as in `In [3]`.
        source: Its text, as typed or as IPython rewrote it.
        cell_id: The notebook's id of the cell, when known; tells a re-run cell from a new one.
        name: What to call it instead of `cell [3]`, such as a file name.
    """

    number: int
    source: str
    cell_id: str = ""
    name: str = ""

    @property
    def label(self) -> str:
        """How users know it."""
        return self.name or f"cell [{self.number}]"


def python_tree(source: str) -> tuple[ast.Module, str] | None:
    """Read an executed cell: its tree and the Python text it belongs to; None when nothing of it is Python here."""
    text = _without_cell_magic(source)
    if text is None:
        return None
    try:
        text, _ = _set_magics_aside(text)
        return ast.parse(text), text
    except (SyntaxError, ValueError):
        return None  # it failed to run in the notebook too, so it bound nothing


def parse_code(code: str, first_line: int) -> tuple[ast.Module, str, list[str]]:
    """Read the code to capture: its tree, its text as Python, and notes on what was left out of it.

    Magics that only concern the kernel's display, such as `%matplotlib inline`, are left out.

    Raises:
        CaptureError: It holds IPython syntax (every such line is named), is no Python, or is empty.
    """
    try:
        text, magics = _set_magics_aside(code)
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise _not_python(code, error, first_line) from None
    dropped = [index for index in magics if _ONLY_HERE.match(code.splitlines()[index])]
    magics = [index for index in magics if index not in dropped]
    if magics:
        lines = [f"line {first_line + index}: {code.splitlines()[index].strip()}" for index in magics]
        more = [f"and {len(lines) - _SHOWN_MAGICS} more"] if len(lines) > _SHOWN_MAGICS else []
        raise CaptureError(
            "\n".join([f"This cell uses IPython's own syntax, {lines[0]}", *lines[1:_SHOWN_MAGICS], *more]),
            "A trial runs plain Python: no line may start with % or !, or end with ?.",
            "Move these lines to a cell above, or use Python instead (subprocess.run, os.chdir).",
        )
    if not tree.body:
        raise CaptureError("There is no code to train.", "Python below the header.", "Write it below the line `---`.")
    return tree, text if dropped else code, [_left_out(code.splitlines()[i].strip(), first_line + i) for i in dropped]


def _left_out(line: str, number: int) -> str:
    shows = "; plt.show() and display(...) keep their pictures there" if "matplotlib" in line else ""
    return f"Line {number} is left out: `{line}` means nothing in a trial{shows}."


def _not_python(code: str, error: SyntaxError | ValueError, first_line: int) -> CaptureError:
    if not isinstance(error, SyntaxError) or error.lineno is None:
        return CaptureError(f"This cell is not Python: {error}.", "", "Correct the cell and run it again.")
    lines = code.splitlines()
    text = lines[error.lineno - 1].strip() if error.lineno <= len(lines) else ""
    found = f"Line {first_line + error.lineno - 1} of this cell is not Python: {error.msg}."
    return CaptureError(found, f"The line reads: {text}" if text else "", "Correct the cell and run it again.")


def _without_cell_magic(source: str) -> str | None:
    if source.startswith(_TRANSFORMED):
        return _transformed_body(source)
    found = _CELL_MAGIC.match(source.lstrip())
    if found is None:
        return source
    if found[1] not in _RUNS_ITS_BODY_HERE:
        return None
    return source.replace("%%", "#%%", 1)


def _transformed_body(source: str) -> str | None:
    try:
        call = ast.parse(source.strip(), mode="eval").body
        assert isinstance(call, ast.Call)
        magic, _, body = (ast.literal_eval(argument) for argument in call.args)
    except (SyntaxError, ValueError, AssertionError):
        return None
    return f"\n{body}" if magic in _RUNS_ITS_BODY_HERE else None


def _set_magics_aside(source: str) -> tuple[str, list[int]]:
    """Replace each line of IPython syntax by `pass`; gives the text and the indices of these lines.

    Only a line that stops the parser counts: `% b` may well continue an expression.
    """
    lines, magics = source.splitlines(), list[int]()
    while True:
        text = "\n".join(lines) + "\n"
        try:
            ast.parse(text)
        except SyntaxError as error:
            index = _magic_at(lines, (error.lineno or 1) - 1)
            if index is None:
                raise
            magics.append(index)
            _blank(lines, index)
        else:
            return text, sorted(magics)


def _magic_at(lines: list[str], index: int) -> int | None:
    candidates = (at for at in range(min(index, len(lines) - 1), -1, -1) if _MAGIC.search(lines[at]))
    return next(candidates, None)


def _blank(lines: list[str], index: int) -> None:
    continued = lines[index].endswith("\\")
    indent = lines[index][: len(lines[index]) - len(lines[index].lstrip())]
    lines[index] = f"{indent}pass"
    while continued and (index := index + 1) < len(lines):
        continued = lines[index].endswith("\\")
        lines[index] = ""

"""The notebook's cells as Python: IPython's own syntax is set aside, line numbers stay."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from jupyter_autotrain.capture.syntax import magics
from jupyter_autotrain.capture.syntax.magic_rules import MagicTranslation, judge
from jupyter_autotrain.capture.syntax.magics import Magic
from jupyter_autotrain.capture.syntax.nodes import replaced
from jupyter_autotrain.errors import CaptureError

_CELL_MAGIC = re.compile(r"^%%(\w+)")
_TRANSFORMED = "get_ipython().run_cell_magic("
_RUNS_ITS_BODY_HERE = frozenset({"capture", "prun", "time"})
_SHOWN_MAGICS = 3


@dataclass(frozen=True, slots=True)
class Cell:
    """An executed cell.

    Attributes:
        number: Its execution number, as in `In [3]`.
        source: Its text, as typed or as IPython rewrote it.
        cell_id: The notebook's id of the cell, when known; distinguishes a re-run cell from a new one.
        name: What to call it instead of `cell [3]`, such as a file name.
    """

    number: int
    source: str
    cell_id: str = ""
    name: str = ""

    @property
    def label(self) -> str:
        """The name by which users know it."""
        return self.name or f"cell [{self.number}]"


def python_tree(source: str) -> tuple[ast.Module, str] | None:
    """Read an executed cell: its tree and the Python text it belongs to; None when nothing of it is Python here."""
    text = _without_cell_magic(source)
    if text is None:
        return None
    try:
        text, found = magics.set_aside(text)
        for magic in found:
            text = magics.replace(text, magic.index, _as_executed(magic))
        return ast.parse(text), text
    except (SyntaxError, ValueError):
        return None  # it failed to run in the notebook too, so it bound nothing


def _as_executed(magic: Magic) -> str:
    """Return the code that a line of an executed cell has run here, as far as it is Python."""
    if magic.target and magic.name == magics.SHELL:
        return f"{magic.target} = get_ipython().getoutput({magic.argument!r})"
    outcome = judge(magic)
    return "pass" if outcome.expected else outcome.code


def parse_code(code: str, first_line: int) -> tuple[ast.Module, str, list[str]]:
    """Read the code to capture: its tree, its text as Python, and notes on what was left out of it.

    IPython's syntax that changes nothing in a trial, such as `%matplotlib inline`, is left out; `%time` is taken off
    its statement. Lines keep their numbers.

    Raises:
        CaptureError: It holds other IPython syntax (every such line is named), is no Python, or is empty.
    """
    lone = _cell_magic_of(code)
    if lone is not None:
        _refuse_any([(lone, judge(lone))], first_line)
    try:
        tree, text, judged = _lines_translated(code)
    except (SyntaxError, ValueError) as error:
        raise _not_python(code, error, first_line) from None
    converted = [(node, magic, judge(magic)) for node, magic in magics.calls(tree)]
    judged += [(magic, outcome) for _, magic, outcome in converted]
    _refuse_any(judged, first_line)
    if converted:
        text = replaced(text, [(node, outcome.code) for node, _, outcome in converted])
        tree = ast.parse(text)
    if not tree.body:
        raise CaptureError("There is no code to train.", "Python below the header.", "Write it below the line `---`.")
    notes = [_note(magic, outcome, first_line) for magic, outcome in judged]
    return tree, text if judged else code, notes


def _lines_translated(code: str) -> tuple[ast.Module, str, list[tuple[Magic, MagicTranslation]]]:
    text, found = magics.set_aside(code)
    judged = [(magic, judge(magic)) for magic in found]
    for magic, outcome in judged:
        text = magics.replace(text, magic.index, "pass" if outcome.expected else outcome.code)
    return ast.parse(text), text, judged


def _cell_magic_of(code: str) -> Magic | None:
    """Return the `%%magic` above all code, which takes all of it; None without one."""
    lines = enumerate(code.split("\n"))
    index, line = next(((i, line) for i, line in lines if line.strip() and not line.lstrip().startswith("#")), (0, ""))
    return magics.read(line, index) if _CELL_MAGIC.match(line) else None


def _note(magic: Magic, outcome: MagicTranslation, first_line: int) -> str:
    line = first_line + magic.index
    written = magic.written.partition("\n")[0]
    if outcome.code == "pass":
        return f"Line {line} is left out: `{written}` {outcome.note}."
    return f"Line {line} runs as plain Python: `{written}`; {outcome.note}."


def _refuse_any(judged: list[tuple[Magic, MagicTranslation]], first_line: int) -> None:
    refused = [(magic, outcome) for magic, outcome in judged if outcome.expected]
    if not refused:
        return
    lines = [f"line {first_line + magic.index}: {magic.written.partition(chr(10))[0]}" for magic, _ in refused]
    more = [f"and {len(lines) - _SHOWN_MAGICS} more"] if len(lines) > _SHOWN_MAGICS else []
    found = "\n".join([f"This cell uses IPython's own syntax, {lines[0]}", *lines[1:_SHOWN_MAGICS], *more])
    raise CaptureError(found, refused[0][1].expected, refused[0][1].action)


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
        magic, _, body = map(ast.literal_eval, call.args)
    except (SyntaxError, ValueError, AssertionError):
        return None
    return f"\n{body}" if magic in _RUNS_ITS_BODY_HERE else None

"""Calls that change a library and leave nothing behind that could be read: made again as written, or told.

What a call does is guessed from its name: `set_option`, `filterwarnings`, `register`. Calls that show, write, fetch
or compute are let be; of what is left, only calls of libraries that the trial uses are told.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence

from jupyter_autotrain.capture.differences import Difference, Kind
from jupyter_autotrain.capture.items import Item
from jupyter_autotrain.capture.slice import Slice
from jupyter_autotrain.capture.state import generators, settings
from jupyter_autotrain.capture.state.at_hand import repeatable
from jupyter_autotrain.capture.state.paths import top
from jupyter_autotrain.capture.state.touches import Touch
from jupyter_autotrain.capture.state.uses import Uses
from jupyter_autotrain.core.wording import cut

_SETS = re.compile(
    r"set($|_|[A-Z])|use_|enable|disable|register|unregister|configure|config$|reset_|allow_|add_safe_globals$"
    r"|basicConfig$|captureWarnings$|filterwarnings$|simplefilter$|resetwarnings$|add(Handler|Filter|LevelName)$"
    r"|remove(Handler|Filter)$|pickle$|stack_size$|prefer_|require_"
)
_CHANGES_A_PART = frozenset({"add", "append", "clear", "discard", "extend", "insert", "pop", "remove", "update"})
_BY_FULL_NAME = frozenset(
    {"nest_asyncio.apply", "tqdm.auto.tqdm.pandas", "tqdm.tqdm.pandas", "tqdm.notebook.tqdm.pandas"}
)
_STARTS = re.compile(r"init(_|$|ialize)")
_QUIET = (
    "IPython.", "asyncio.", "atexit.", "copy.", "faulthandler.", "gc.", "google.colab", "heapq.", "importlib.",
    "ipywidgets.", "json.", "jupyter_autotrain", "matplotlib.", "numpy.random.", "os.", "pickle.", "plotly.offline.",
    "pprint.", "random.", "seaborn.", "shutil.", "subprocess.", "sys.argv", "sys.modules", "sys.path", "sys.std",
    "threading.", "time.", "torch.nn.init.", "tqdm.write",
)  # fmt: skip
_DOES_NO_LASTING = re.compile(
    r"(show|plot|print|display|draw|fig|save|dump|download|write|log|info|warn|debug|error|critical|exception|test"
    r"|assert|close|clear|empty|collect|sleep|head|tail|describe|summary|sync|version|get|is_|has_|list|load|read"
    r"|rand|make|mkdir|copy|extract|im|cla$|clf$|zeros|ones|eye|full|arange|linspace|tensor|array|login|mount|check"
    r"|run|fit|train|eval|predict|wait|flush|fill|shuffle|clip|finish|upload|open|input|exit|main|unzip|[A-Z])"
)
_KEEPS_ELSEWHERE = ("mlflow.", "wandb.", "comet_ml.", "neptune.", "clearml.", "ray.")
_SHOWN = 90


def carry(
    touches: Sequence[Touch], uses: Uses, slice_: Slice, written: Sequence[str]
) -> Iterator[tuple[Item | None, Difference]]:
    """What is done again, and what is told.

    Args:
        touches: What the cells did.
        uses: What the trial uses.
        slice_: The captured names.
        written: Paths that are carried already.
    """
    parts = tuple(f"{path}." for path in written)
    setting = [touch for touch in touches if _changes_a_library(touch) and touch.path in uses]
    setting = [touch for touch in setting if not touch.path.startswith(parts)]
    calls = [touch.target for touch in touches if _changes_a_library(touch) or settings.covers(touch)]
    latest = {_unit(touch)[1]: touch for touch in setting}  # what ran twice is done once
    for text, touch in latest.items():
        node = _unit(touch)[0]
        again = repeatable(node, touch, slice_, calls, text) if _may_repeat(touch) else None
        if again is None:
            yield None, Difference(Kind.NOT_CARRIED, _shown(touch), touch.place.label)
            continue
        label = "" if touch.place.in_function else touch.place.label
        item = Item(
            f"call {text}", "state", again.text, label, label, node.lineno, touch.position,
            eager=again.names.eager, called=again.names.called, deferred=again.names.deferred,
        )  # fmt: skip
        yield item, Difference(Kind.REPLAYED, _shown(touch), touch.place.label)
    for touch in touches:
        if _may_change_a_library(touch) and uses.loads(top(touch.path)):
            yield None, Difference(Kind.NOT_CARRIED, f"{_shown(touch)}, if it sets anything", touch.place.label)


def _shown(touch: Touch) -> str:
    return cut(ast.unparse(touch.target), _SHOWN)


def _is_candidate(touch: Touch) -> bool:
    """A call that stands for itself, and that nothing else accounts for."""
    if not touch.is_alone or touch.is_followed or touch.path.startswith(_QUIET):
        return False
    return not (generators.is_seeding(touch) or settings.covers(touch) or _is_undone(touch))


def _changes_a_library(touch: Touch) -> bool:
    owner, _, name = touch.path.rpartition(".")
    if not _is_candidate(touch):
        return False
    is_part = name in _CHANGES_A_PART and "." in owner and "(" not in owner
    return is_part or bool(_SETS.match(name)) or touch.path in _BY_FULL_NAME


def _may_change_a_library(touch: Touch) -> bool:
    """A call without a telling name, on nothing but values written out, whose value nobody saw."""
    if not _is_candidate(touch) or _changes_a_library(touch) or touch.is_last or touch.place.in_function:
        return False
    name = touch.path.rpartition(".")[2]
    if top(touch.path) in sys.stdlib_module_names or "(" in touch.path:
        return False
    if _STARTS.match(name):
        return True
    if _DOES_NO_LASTING.match(name) or not isinstance(touch.target, ast.Call):
        return False
    given = [*touch.target.args, *(keyword.value for keyword in touch.target.keywords)]
    return all(isinstance(part, ast.Constant) for part in given)


def _is_undone(touch: Touch) -> bool:
    """In a block such as `with warnings.catch_warnings():`, which sets all back at its end."""
    managers = [
        item.context_expr for block in touch.place.blocks if isinstance(block, ast.With) for item in block.items
    ]
    named = {part.id for manager in managers for part in ast.walk(manager) if isinstance(part, ast.Name)}
    return top(touch.path) in {top(touch.place.aliases.get(name, "")) for name in named}


def _may_repeat(touch: Touch) -> bool:
    """False for what writes files, talks to a service, or ran only under a condition inside a function."""
    if touch.path.startswith(_KEEPS_ELSEWHERE) or (touch.place.in_function and touch.place.blocks):
        return False
    keywords = {keyword.arg for keyword in touch.target.keywords} if isinstance(touch.target, ast.Call) else set()
    return not keywords & {"filename", "handlers"}


def _unit(touch: Touch) -> tuple[ast.stmt, str]:
    """What is done again as one: the statement, or the whole block at the left margin that it stands in."""
    if touch.place.in_function or not touch.place.blocks:
        return touch.node, touch.text
    outer = touch.place.outer
    return outer, ast.get_source_segment(touch.place.text, outer) or ast.unparse(outer)

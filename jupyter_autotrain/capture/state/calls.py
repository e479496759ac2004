"""Calls that change a library and leave nothing behind that could be read: made again as written, or reported.

What a call does is guessed from its name: `set_option`, `filterwarnings`, `register`. Calls that show, write, fetch
or compute are left out; of the rest, only calls of libraries that the trial uses are reported.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence

from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.items import Item
from jupyter_autotrain.capture.slice import Slice
from jupyter_autotrain.capture.state import settings
from jupyter_autotrain.capture.state.effects import Effect
from jupyter_autotrain.capture.state.paths import top
from jupyter_autotrain.capture.state.repeatable import repeatable
from jupyter_autotrain.capture.state.statements import CHANGES_A_PART
from jupyter_autotrain.capture.state.uses import UsedLibraries
from jupyter_autotrain.core.text_format import cut

_SETS = re.compile(
    r"set($|_|[A-Z])|(set|del)attr$|use_|enable|disable|register|unregister|configure|config$|reset_|allow_|add_safe_globals$"
    r"|basicConfig$|captureWarnings$|dictConfig$|fileConfig$|add_type$|filterwarnings$|simplefilter$|resetwarnings$|addfont$|add(Handler|Filter|LevelName)$"
    r"|remove(Handler|Filter)$|pickle$|stack_size$|prefer_|require_"
)
_BY_FULL_NAME = frozenset(
    {"nest_asyncio.apply", "tqdm.auto.tqdm.pandas", "tqdm.tqdm.pandas", "tqdm.notebook.tqdm.pandas"}
)
_SEEDS = re.compile(r"(?!jax\.|tensorflow\.).*(seed|rng_state)")  # the states of generators travel
_STARTS = re.compile(r"init(_|$|ialize)")
_QUIET = (
    "IPython.", "asyncio.", "atexit.", "copy.", "faulthandler.", "gc.collect", "gc.freeze", "google.colab", "heapq.",
    "importlib.", "ipywidgets.", "json.", "jupyter_autotrain", "matplotlib.", "numpy.random.", "os.", "pickle.",
    "plotly.offline.", "pprint.", "random.", "seaborn.", "shutil.", "subprocess.", "sys.argv", "sys.modules",
    "sys.path", "sys.std", "threading.", "time.", "torch.nn.init.", "tqdm.write",
)  # fmt: skip
_OF_MATPLOTLIB = re.compile(r"matplotlib\.(.*\.)?(register|addfont)")
_DOES_NO_LASTING = re.compile(
    r"(show|plot|print|display|draw|fig|save|dump|download|write|log|info|warn|debug|error|critical|exception|test"
    r"|assert|close|clear|empty|collect|sleep|head|tail|describe|summary|sync|version|get|is_|has_|list|load|read"
    r"|rand|make|mkdir|copy|extract|im|cla$|clf$|zeros|ones|eye|full|arange|linspace|tensor|array|login|mount|check"
    r"|run|fit|train|eval|predict|wait|flush|fill|shuffle|clip|finish|upload|open|input|exit|main|unzip|[A-Z])"
)
_KEEPS_ELSEWHERE = ("mlflow.", "wandb.", "comet_ml.", "neptune.", "clearml.", "ray.")
_SHOWN = 90


def restore_code(
    effects: Sequence[Effect], uses: UsedLibraries, slice_: Slice, written: Sequence[str]
) -> Iterator[tuple[Item | None, Difference]]:
    """What is done again, and the differences.

    Args:
        effects: What the cells did.
        uses: What the trial uses.
        slice_: The captured names.
        written: Paths that are carried already.
    """
    parts = tuple(f"{path}." for path in written)
    setting = [effect for effect in effects if _changes_a_library(effect) and effect.path in uses]
    setting = [effect for effect in setting if not effect.path.startswith(parts)]
    calls = [effect.target for effect in effects if _changes_a_library(effect) or settings.covers(effect)]
    calls += [call.func for call in calls if isinstance(call, ast.Call)]  # what a registering call gives is called too
    latest = {_unit(effect)[1]: effect for effect in setting}  # what ran twice is done once
    for text, effect in latest.items():
        node = _unit(effect)[0]
        again = repeatable(node, effect, slice_, calls, text) if _may_repeat(effect) else None
        if again is None:
            yield None, Difference(DifferenceKind.NOT_CARRIED, _shown(effect), effect.scope.label)
            continue
        label = "" if effect.scope.in_function else effect.scope.label
        item = Item(
            f"call {text}", "state", again.text, label, label, node.lineno, effect.position,
            eager=again.names.eager, called=again.names.called, deferred=again.names.deferred,
        )  # fmt: skip
        yield item, Difference(DifferenceKind.REPLAYED, _shown(effect), effect.scope.label)
    for effect in effects:
        if _may_change_a_library(effect) and uses.loads(top(effect.path)):
            yield (
                None,
                Difference(DifferenceKind.NOT_CARRIED, f"{_shown(effect)}, if it sets anything", effect.scope.label),
            )


def _shown(effect: Effect) -> str:
    return cut(ast.unparse(effect.target), _SHOWN)


def _is_candidate(effect: Effect) -> bool:
    """A call that is a statement of its own, and that nothing else covers."""
    is_quiet = effect.path.startswith(_QUIET) and not _OF_MATPLOTLIB.match(effect.path)
    if not effect.is_alone or effect.is_followed or is_quiet:
        return False
    return not (_SEEDS.match(effect.path) or settings.covers(effect) or _is_undone(effect))


def _changes_a_library(effect: Effect) -> bool:
    owner, _, name = effect.path.rpartition(".")
    if not _is_candidate(effect):
        return False
    is_part = name in CHANGES_A_PART and "." in owner and "(" not in owner
    return is_part or bool(_SETS.match(name)) or effect.path in _BY_FULL_NAME


def _may_change_a_library(effect: Effect) -> bool:
    """A call without a known name, on nothing but literals, whose value is not used or shown."""
    if not _is_candidate(effect) or _changes_a_library(effect) or effect.is_last or effect.scope.in_function:
        return False
    name = effect.path.rpartition(".")[2]
    if top(effect.path) in sys.stdlib_module_names or "(" in effect.path:
        return False
    if _STARTS.match(name):
        return True
    if _DOES_NO_LASTING.match(name) or not isinstance(effect.target, ast.Call):
        return False
    given = [*effect.target.args, *(keyword.value for keyword in effect.target.keywords)]
    return all(isinstance(part, ast.Constant) for part in given)


def _is_undone(effect: Effect) -> bool:
    """In a block such as `with warnings.catch_warnings():`, which sets all back at its end."""
    managers = [
        item.context_expr for block in effect.scope.blocks if isinstance(block, ast.With) for item in block.items
    ]
    named = {part.id for manager in managers for part in ast.walk(manager) if isinstance(part, ast.Name)}
    return top(effect.path) in {top(effect.scope.aliases.get(name, "")) for name in named}


def _may_repeat(effect: Effect) -> bool:
    """False for what writes files, talks to a service, or ran only under a condition inside a function."""
    if effect.path.startswith(_KEEPS_ELSEWHERE) or (effect.scope.in_function and effect.scope.blocks):
        return False
    keywords = {keyword.arg for keyword in effect.target.keywords} if isinstance(effect.target, ast.Call) else set()
    return not keywords & {"filename", "handlers"}


def _unit(effect: Effect) -> tuple[ast.stmt, str]:
    """What is done again as one: the statement, or the whole block at the left margin that contains it."""
    if effect.scope.in_function or not effect.scope.blocks:
        return effect.node, effect.text
    outer = effect.scope.outer
    return outer, ast.get_source_segment(effect.scope.text, outer) or ast.unparse(outer)

"""Changes of libraries by earlier cells that no trial has: attributes that were put on them, and calls.

A function that was replaced, a method that was added, a mock that was started is found where it is. A call leaves
nothing behind that could be read: what it does is guessed from its name (`register`, `filterwarnings`, `setLevel`), and
calls that show, write, fetch or compute are left out. All are told with their cells; they are made again where the
header asks for it: `setup: [3]` runs cell [3] in the trial first.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import FunctionType, ModuleType

from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.items import Item
from jupyter_autotrain.capture.slice import Slice
from jupyter_autotrain.capture.state import settings
from jupyter_autotrain.capture.state.effects import CHANGES_A_PART, Effect
from jupyter_autotrain.capture.state.libraries import UsedLibraries
from jupyter_autotrain.capture.state.paths import path_of_value, top
from jupyter_autotrain.capture.syntax.codes import own_globals
from jupyter_autotrain.capture.syntax.nodes import arguments_of
from jupyter_autotrain.core.text_format import cut

_ELSEWHERE = (
    "os.environ", "sys.argv", "sys.dont_write_bytecode", "sys.path", "sys.ps", "sys.std", "sys.displayhook",
    "sys.excepthook",
)  # fmt: skip
"""Names that the environment, the trial itself or the shell takes care of."""
_NO_LIBRARIES = ("__main__", "__mp_main__", "IPython", "ipykernel", "jupyter_autotrain", "unittest.mock")
_MISSING = object()
_CALLED = frozenset((FunctionType, property, classmethod, staticmethod))
_SETS = re.compile(
    r"set($|_|[A-Z])|(set|del)attr$|use_|enable|disable|register|unregister|configure|config$|reset_|allow_|add_safe_globals$"
    r"|basicConfig$|captureWarnings$|dictConfig$|fileConfig$|add_type$|filterwarnings$|simplefilter$|resetwarnings$|addfont$|add(Handler|Filter|LevelName)$"
    r"|remove(Handler|Filter)$|pickle$|stack_size$|prefer_|require_|custom_op$|impl|overload"
)
_BY_FULL_NAME = re.compile(r"nest_asyncio\.apply|tqdm\.(?:std\.|auto\.|asyncio\.|notebook\.)*tqdm\w*\.pandas")
_SEEDS = re.compile(r"(?!jax\.|tensorflow\.).*(seed|rng_state)")  # the states of generators travel
_STARTS = re.compile(r"init(_|$|ialize)")
_QUIET = (
    "IPython.", "asyncio.", "atexit.", "copy.", "faulthandler.", "gc.collect", "gc.freeze", "google.colab", "heapq.",
    "importlib.", "ipywidgets.", "json.", "jupyter_autotrain", "matplotlib.", "numpy.random.", "os.", "pickle.",
    "plotly.offline.", "posix.", "pprint.", "random.", "seaborn.", "shutil.", "subprocess.", "sys.argv", "sys.modules",
    "sys.path", "sys.std", "threading.", "time.", "torch.nn.init.", "tqdm.write", "unittest.mock.",
)  # fmt: skip
_OF_MATPLOTLIB = re.compile(r"matplotlib\.(.*\.)?(register|addfont)")
_DOES_NO_LASTING = re.compile(
    r"(show|plot|print|display|draw|fig|save|dump|download|write|log|info|warn|debug|error|critical|exception|test"
    r"|assert|close|clear|empty|collect|sleep|head|tail|describe|summary|sync|version|get|is_|has_|list|load|read"
    r"|rand|make|mkdir|copy|extract|im|cla$|clf$|zeros|ones|eye|full|arange|linspace|tensor|array|login|mount|check"
    r"|run|fit|train|eval|predict|wait|flush|fill|shuffle|clip|finish|upload|open|input|exit|main|unzip|[A-Z])"
)
_SHOWN = 90


# Attributes


def by_text(effects: Sequence[Effect], uses: UsedLibraries) -> Iterator[Effect]:
    """Yield the assignments to attributes and items of libraries, as far as they still hold."""
    for effect in effects:
        path = effect.path
        if isinstance(effect.target, ast.Call) or path.startswith(_ELSEWHERE) or "(" in path or path not in uses:
            continue
        value = _live(path)
        if not settings.covers(effect) and path_of_value(value) != path and (value is not _MISSING or "[" in path):
            yield effect


def _live(path: str) -> object:
    """Return the value that a full name leads to now; `_MISSING` when it leads nowhere."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        value: object = sys.modules.get(".".join(parts[:length]))
        if value is not None:
            for name in parts[length:]:
                value = getattr(value, name, _MISSING)
            return value
    return _MISSING


def found(uses: UsedLibraries, namespace: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the full name and the last name of functions and methods of the notebook that libraries have now.

    Mocks that were started are among them.

    Args:
        uses: What the trial uses.
        namespace: The notebook's globals.
    """
    mock = sys.modules.get("unittest.mock")
    for patch in mock._patch._active_patches if mock else ():  # noqa: SLF001 - there is no public way to ask
        owner = path_of_value(getattr(patch, "target", None))
        if owner and owner in uses:
            yield f"{owner}.{patch.attribute}", patch.attribute
    if uses.reaches("numpy") and "numpy" in sys.modules:
        yield from _functions_of_numpy(sys.modules["numpy"])
    if uses.reaches("pandas") and "pandas" in sys.modules:
        for key, _ in settings.pandas_options(is_plain=False):
            yield f"pandas.options.{key}", key.rpartition(".")[2]
    if namespace:  # a script that is submitted as text has none, and a look at all libraries takes 10 ms
        yield from _functions_of_notebook(uses, own_globals(namespace))


def _functions_of_numpy(numpy: ModuleType) -> Iterator[tuple[str, str]]:
    """Yield what sets the functions that numpy calls to print and on errors."""
    if numpy.get_printoptions()["formatter"] is not None:
        yield "numpy.set_printoptions(formatter=...)", ""
    if numpy.geterrcall() is not None:
        yield "numpy.seterrcall", ""


def _functions_of_notebook(uses: UsedLibraries, own: Collection[int]) -> Iterator[tuple[str, str]]:
    seen = set[int]()
    for name, module in list(sys.modules.items()):
        if type(module) is ModuleType and not name.startswith(_NO_LIBRARIES) and _is_used(name, uses):
            yield from _put_on(name, vars(module), own, seen)


def _is_used(module: str, uses: UsedLibraries) -> bool:
    return module == "builtins" or uses.reaches(top(module))


def _put_on(
    owner: str, attributes: Mapping[str, object], own: Collection[int], seen: set[int]
) -> Iterator[tuple[str, str]]:
    """Yield the attributes put on a module, and on the classes in it that have not been looked at."""
    for name, value in list(attributes.items()):
        kind = type(value)
        if kind in _CALLED:
            if _is_put_here(value, own):
                yield f"{owner}.{name}", name
        elif issubclass(kind, type) and id(value) not in seen:
            seen.add(id(value))
            for k in _members_put_here(vars(value), own):
                yield f"{owner}.{name}.{k}", k


def _members_put_here(attributes: Mapping[str, object], own: Collection[int]) -> list[str]:
    """Return the names of functions of the notebook in a class; libraries have some ten thousand others."""
    found = []
    for name, value in list(attributes.items()):
        kind = type(value)
        if kind is FunctionType:  # most of them
            if id(value.__globals__) in own:  # type: ignore[attr-defined]  # it has them
                found.append(name)
        elif kind in _CALLED and _is_put_here(value, own):
            found.append(name)
    return found


def _is_put_here(value: object, own: Collection[int]) -> bool:
    kind = type(value)
    if kind is property:
        value = value.fget  # type: ignore[attr-defined]  # it has one
    elif kind is classmethod or kind is staticmethod:
        value = value.__func__  # type: ignore[attr-defined]  # both have it
    return type(value) is FunctionType and id(value.__globals__) in own


# Calls


def setting(effects: Sequence[Effect], uses: UsedLibraries, slice_: Slice) -> Iterator[Effect]:
    """Yield the calls that set something of a library which no trial has.

    Args:
        effects: What the cells did.
        uses: What the trial uses.
        slice_: The captured names.
    """
    for one in effects:
        if _is_candidate(one, slice_) and _changes_a_library(one) and one.path in uses:
            yield one


def maybe_setting(effects: Sequence[Effect], uses: UsedLibraries, slice_: Slice) -> Iterator[Effect]:
    """Yield the calls that may set something, as far as one can see from their text."""
    for one in effects:
        if _is_candidate(one, slice_) and _may_change_a_library(one) and uses.loads(top(one.path)):
            yield one


def proposal(cells: Iterable[int]) -> str:
    """Return the advice on the effects of cells, in words."""
    return f"`setup: [{', '.join(map(str, sorted(set(cells))))}]` in the header runs its cell first"


def ran_first(items: Iterable[Item]) -> Iterator[Difference]:
    """Yield the cells that run in the trial before all others, as the header asks."""
    for item in items:
        if item.how == "setup":
            yield Difference(DifferenceKind.REPLAYED, f"{item.label} runs first, by `setup:` of the header")


def shown(effect: Effect) -> str:
    """Return the text of a call, for people."""
    decorated = f" of {effect.registers}" if effect.registers else ""
    return cut(ast.unparse(effect.target), _SHOWN) + decorated


def _is_candidate(effect: Effect, slice_: Slice) -> bool:
    """Return whether a call is a statement of its own, or a decorator that no trial runs, and nothing covers it."""
    if not effect.is_alone or effect.is_undone or effect.cell.number in slice_.options.setup:
        return False
    if effect.path.startswith(_QUIET) and not _OF_MATPLOTLIB.match(effect.path):
        return False
    if effect.registers and getattr(slice_.items.get(effect.registers), "how", "") == "source":
        return False
    keywords = {one.arg for one in effect.target.keywords} if isinstance(effect.target, ast.Call) else set()
    is_read = settings.covers(effect) and not keywords & {"filename", "handlers"}
    return not (_SEEDS.match(effect.path) or is_read)


def _changes_a_library(effect: Effect) -> bool:
    owner, _, name = effect.path.rpartition(".")
    is_part = name in CHANGES_A_PART and "." in owner and "(" not in owner
    return is_part or bool(_SETS.match(name)) or bool(_BY_FULL_NAME.fullmatch(effect.path))


def _may_change_a_library(effect: Effect) -> bool:
    """Return whether a call without a known name, on nothing but literals, may set something."""
    name = effect.path.rpartition(".")[2]
    is_python = top(effect.path) in sys.stdlib_module_names or "(" in effect.path
    if _changes_a_library(effect) or is_python or effect.registers or effect.is_shown:
        return False
    if _STARTS.match(name):
        return True
    if _DOES_NO_LASTING.match(name) or not isinstance(effect.target, ast.Call):
        return False
    return all(isinstance(part, ast.Constant) for part in arguments_of(effect.target))

"""The global random generators: a trial's code starts from their states at submit, whoever set them.

So a trial draws the numbers that the cell would draw here. All trials of an experiment, their workers and their later
attempts start alike; with `seed:` in the header each trial starts from a seed of its own instead. Only generators that
are loaded here and that the trial can reach travel. TensorFlow's cannot be read: its seeding is made again as a call.
"""

from __future__ import annotations

import ast
import pickle
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import ModuleType

from jupyter_autotrain.capture.differences import not_carried
from jupyter_autotrain.capture.items import LATEST, Item
from jupyter_autotrain.capture.slice import Slice
from jupyter_autotrain.capture.state.effects import aliases_in
from jupyter_autotrain.capture.state.libraries import UsedLibraries
from jupyter_autotrain.capture.state.paths import import_text, path_of, top

SEED = "__autotrain_seed__"
AT_IMPORT = "__autotrain_at_import__"
_States = Iterator[tuple[str, object]]


def _random(random: ModuleType) -> _States:
    yield "{m}.setstate({s})", random.getstate()


def _numpy(random: ModuleType) -> _States:
    state = random.get_state(legacy=False)
    if (algorithm := state["bit_generator"]) == "MT19937":
        state["state"]["key"] = state["state"]["key"].tolist()  # an array may not be read by another version
    else:
        yield f"{{m}}.set_bit_generator({{m}}.{algorithm}())", None
    yield "{m}.set_state({s})", state


def _torch(torch: ModuleType) -> _States:
    # A GPU that nothing has used yet starts from the seed; asking for its state would start it here.
    yield "{m}.manual_seed({s})", torch.initial_seed()
    yield "{m}.set_rng_state({s})", torch.get_rng_state()
    if torch.cuda.is_initialized():
        text = "[{m}.cuda.set_rng_state(*one) for one in zip({s}, range({m}.cuda.device_count()))]"
        yield text, torch.cuda.get_rng_state_all()


_GENERATORS: tuple[tuple[str, Callable[[ModuleType], _States]], ...] = (
    ("random", _random),
    ("numpy.random", _numpy),
    ("torch", _torch),
)
"""(the module `{m}` that holds a generator, the expressions that set it again, each with its state `{s}`)."""
_SEEDED_BY: Mapping[str, Collection[str]] = {
    "random": ("random.seed",),
    "numpy": ("numpy.random.seed",),
    "torch": ("torch.manual_seed", "torch.random.manual_seed"),
}
_SEEDS_ALL = frozenset({"seed_everything", "set_seed"})
"""Names of the function that seeds all generators in Lightning, Transformers, Accelerate and PyTorch Geometric."""


def restore(slice_: Slice, uses: UsedLibraries, trees: Iterable[ast.AST]) -> None:
    """Let trials start from the present states, or from the header's seed, and say how several trials differ.

    Args:
        slice_: The captured names.
        uses: What the trial uses.
        trees: The trial's code.
    """
    seed = slice_.options.seed
    trials = slice_.options.trials
    found = [(name, read) for name, read in _GENERATORS if sys.modules.get(name) and uses.reaches(top(name))]
    if seed is not None:
        slice_.take(Item("random generators", "state", f"{SEED}()", position=LATEST))
        text = f"{_listed(top(name) for name, _ in found)}: {_seeded(seed, trials)}, not from their present state"
        slice_.differences += [not_carried(text)] if found else []
        return
    lines = [_line(slice_, name, read, is_needed=top(name) in {"random", *uses.direct}) for name, read in found]
    if lines:
        slice_.take(Item("random generators", "state", "\n".join(lines), position=LATEST))
    drawn = _drawn_unseeded([top(name) for name, _ in found], uses, trees) if trials > 1 else []
    if drawn:
        alike = f"All {trials} trials start from the present state of {_listed(drawn)}, alike"
        slice_.notes.append(f"{alike}; `seed: 1` gives each its own.")


def _listed(names: Iterable[str]) -> str:
    return f"the random generators ({', '.join(names)})"


def _drawn_unseeded(packages: Collection[str], uses: UsedLibraries, trees: Iterable[ast.AST]) -> list[str]:
    """Return the packages whose generators the trial is known to use and does not seed itself.

    Python's own counts where the trial's code imports it: nearly every library holds `random`, few draw from it. Code
    that seeds any generator has thought of this: then so it is with all packages.
    """
    called = _called(list(trees))
    if any(path.rpartition(".")[2] in _SEEDS_ALL for path in called):
        return []
    seeded = {name for name in packages if not called.isdisjoint(_SEEDED_BY[name])}
    used = [name for name in packages if name in uses.direct or (name != "random" and not seeded and uses.loads(name))]
    return [name for name in used if name not in seeded]


def _called(trees: Collection[ast.AST]) -> set[str]:
    """Return the full names of what some code calls."""
    aliases = aliases_in(trees)
    calls = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {path_of(call.func, aliases) for call in calls}


def _seeded(seed: int, trials: int) -> str:
    each = f", trial 2 from {seed + 1} and so on" if trials > 1 else ""
    return f"trial 1 starts from `seed: {seed}` of the header{each}"


def _line(slice_: Slice, name: str, read: Callable[[ModuleType], _States], *, is_needed: bool) -> str:
    """Keep the states of a generator as data, and give the line that sets them.

    A library that only others may load in the trial is not loaded for this: a place may well lack it.
    """
    calls = list[str]()
    for call, state in read(sys.modules[name]):
        file = f"__generator_{len(slice_.values.files)}__"
        if state is not None:
            slice_.values.files[file] = pickle.dumps(state)
        calls.append(call.replace("{s}", f'__autotrain_data__("{file}")'))
    if is_needed:
        return "\n".join(calls).replace("{m}", import_text(name))
    text = ", ".join(calls).replace("{m}", "module")
    return f'{AT_IMPORT}({{"{name}": lambda module: [{text}]}})'

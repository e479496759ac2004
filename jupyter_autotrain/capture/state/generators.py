"""Global random generators that the notebook has seeded: trials continue from their present states."""

from __future__ import annotations

import ast
import pickle
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import ModuleType

from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.state.effects import Effect
from jupyter_autotrain.capture.state.uses import UsedLibraries

_NO_SEEDS = frozenset({"initial_seed", "get_seed", "random_seed"})
_STATES = frozenset({"set_rng_state", "set_rng_state_all", "set_state", "setstate"})
_OTHER_GENERATORS = ("jax.", "tensorflow.compat.", "tensorflow.random.", "tensorflow.set_random_seed")


@dataclass(frozen=True, slots=True)
class Generator:
    """A library's global generator.

    Attributes:
        library: Whose.
        module: The module that holds it.
        seeders: How the full names begin of what seeds it alone.
        state: Its state now, as data; None for a generator that does not exist yet.
        restore: Statements that give it the state `{state}`.
    """

    library: str
    module: str
    seeders: tuple[str, ...]
    state: Callable[[ModuleType], object]
    restore: str


def _torch_state(torch: ModuleType) -> object:
    """The seed, from which a GPU that nothing has used yet starts, and the state of the CPU's generator."""
    return torch.initial_seed(), torch.get_rng_state()


def _gpu_states(torch: ModuleType) -> object:
    return torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None


GENERATORS = (
    Generator(
        "random", "random", ("random.",), lambda module: module.getstate(), '__import__("random").setstate({state})'
    ),
    Generator(
        "numpy", "numpy.random", ("numpy.random.", "numpy.seed"), lambda module: module.get_state(),
        '__import__("numpy.random").random.set_state({state})',
    ),
    Generator(
        "torch", "torch", ("torch.",), _torch_state,
        '__import__("torch").manual_seed({state}[0])\n__import__("torch").set_rng_state({state}[1])',
    ),
    Generator(
        "torch", "torch", ("torch.",), _gpu_states,
        '[__import__("torch").cuda.set_rng_state(state, gpu)'
        ' for gpu, state in enumerate({state}[: __import__("torch").cuda.device_count()])]',
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RestoredState:
    """What trials start from.

    Attributes:
        text: The statements that set all states again; "" for none.
        states: The states, pickled, by the names under which the statements find them.
        differences: What a trial does not have as the notebook has it.
    """

    text: str = ""
    states: Mapping[str, bytes] = field(default_factory=dict)
    differences: tuple[Difference, ...] = ()


def restore_code(effects: Iterable[Effect], uses: UsedLibraries, seed: int | None) -> RestoredState:
    """Take the state of each generator that the notebook has seeded and the trial uses.

    Args:
        effects: What the cells did.
        uses: What the trial uses.
        seed: The header's seed, which goes before the notebook's.
    """
    seeded = _seeded(effects)
    used = [
        one for one in GENERATORS if one.library in seeded and one.module in sys.modules and uses.reaches(one.library)
    ]
    if not used:
        return RestoredState()
    names = ", ".join(dict.fromkeys(one.library for one in used))
    origin = seeded[used[-1].library].scope.label
    if seed is not None:
        text = f"the random numbers of {names}, seeded here; `seed: {seed}` of the header goes before"
        return RestoredState(differences=(Difference(DifferenceKind.NOT_CARRIED, text, origin),))
    states = dict[str, bytes]()
    lines = list[str]()
    for index, one in enumerate(used):
        state = one.state(sys.modules[one.module])
        file = f"__generator_{index}__"
        if state is not None:
            states[file] = pickle.dumps(state)
            lines.append(one.restore.replace("{state}", f'__autotrain_data__("{file}")'))
    text = f"the random numbers of {names}: every trial continues from their present state"
    return RestoredState("\n".join(lines), states, (Difference(DifferenceKind.REPLAYED, text, origin),))


def is_seeding(effect: Effect) -> bool:
    """Whether a call seeds a global generator."""
    name = effect.path.rpartition(".")[2]
    if effect.value is not None or "(" in effect.path or name in _NO_SEEDS or effect.path.startswith(_OTHER_GENERATORS):
        return False
    own = any(effect.path.startswith(one.seeders) for one in GENERATORS)
    return (own and name in _STATES) or ("seed" in name and isinstance(effect.target, ast.Call))


def _seeded(effects: Iterable[Effect]) -> dict[str, Effect]:
    """The libraries whose generators were seeded, each with the latest call that did; a helper may seed them all."""
    seeded: dict[str, Effect] = {}
    for effect in effects:
        if not is_seeding(effect) or effect.is_followed:
            continue
        own = [one.library for one in GENERATORS if effect.path.startswith(one.seeders)]
        for library in own or [one.library for one in GENERATORS]:
            seeded[library] = effect
    return seeded

"""The samplers and pruners of Optuna and OptunaHub by name, with their options; Optuna is loaded when one is made."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module, util
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.errors import AutotrainError

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler

OPTUNA: Final = "optuna"
HUB: Final = "optunahub"

SAMPLERS: Mapping[str, str] = MappingProxyType(
    {
        "tpe": "TPESampler",
        "random": "RandomSampler",
        "evolution": "NSGAIISampler",
        "cmaes": "CmaEsSampler",
        "gp": "GPSampler",
        "qmc": "QMCSampler",
    }
)
_DEFAULTS: Mapping[str, JsonObject] = MappingProxyType(
    {"TPESampler": {"multivariate": True}, "NSGAIISampler": {"population_size": 20}}
)
_PACKAGES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "CmaEsSampler": ("cmaes",),
        "GPSampler": ("torch", "scipy"),
        "QMCSampler": ("scipy",),
        "WilcoxonPruner": ("scipy",),
    }
)
_MEMORYLESS: Final = ("TPESampler", "RandomSampler", "GPSampler", "BruteForceSampler")  # all else keeps notes on trials
_NEWEST: Final = MappingProxyType({"TPESampler": 500})  # its suggestions cost time by trial; old ones hardly count
_QUIET: Final = ("warn_independent_sampling", "warn_asynchronous_seeding")


@dataclass(frozen=True, slots=True)
class Sampling:
    """One way to sample: a class with options, made anew for each trial, with a seed of its own.

    Attributes:
        kind: The class.
        options: Its arguments.
        is_memoryless: True where a suggestion follows from parameters and values alone. Any other sampler keeps notes
            on each trial that it made, which have to be made again after a restart.
        newest: It sees so many of the newest trials, and the best of the older ones; None: all.
        is_from_hub: True where it may need more of a study than the trials.
    """

    kind: Callable[..., BaseSampler]
    options: Mapping[str, Any]
    is_memoryless: bool
    newest: int | None
    is_from_hub: bool

    def create(self, seed: int, experiment_seed: int) -> BaseSampler:
        """Return a sampler for one trial."""
        known = inspect.signature(self.kind).parameters
        quiet = {name: False for name in _QUIET if name in known}
        seeds: dict[str, object] = {"seed": seed} if "seed" in known else {}
        if "qmc_type" in known:  # one sequence for the whole experiment
            random_sampler = import_module("optuna.samplers").RandomSampler
            seeds = {"seed": experiment_seed, "independent_sampler": random_sampler(seed=seed)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is experimental in Optuna
            return self.kind(**{**quiet, **seeds, **self.options})


def read_sampling(name: str, options: JsonObject) -> Sampling:
    """Return the way to sample that a tuner's name means.

    Args:
        name: One of `SAMPLERS`, `optuna:CLASS` or `optunahub:PACKAGE:CLASS`.
        options: Its arguments.

    Raises:
        AutotrainError: There is none, a package for it is missing, or an option is none of its arguments.
    """
    prefix, _, rest = name.partition(":")
    if prefix == HUB:
        package, _, class_name = rest.partition(":")
        kind = _from_hub(package, class_name)
    else:
        class_name = rest if prefix == OPTUNA else SAMPLERS[name]
        kind = _class_of("sampler", class_name, "`tuner: {optuna: CLASS}`")
    _check_options(class_name, kind, options)
    is_hub = prefix == HUB
    return Sampling(
        kind,
        {**_DEFAULTS.get(class_name, {}), **options},
        not is_hub and class_name in _MEMORYLESS,
        None if is_hub else _NEWEST.get(class_name),
        is_hub,
    )


def require(name: str, packages: tuple[str, ...]) -> None:
    """Check that packages can be imported.

    Raises:
        AutotrainError: With the line that installs those that are missing.
    """
    missing = [package for package in packages if util.find_spec(package) is None]
    if missing:
        names = " ".join(missing)
        raise AutotrainError(
            f"{name} needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed.",
            "The search runs in the environment of this notebook's kernel.",
            f"pip install {names}",
        )


def read_pruner(class_name: str, options: JsonObject) -> BasePruner:
    """Return a pruner of Optuna.

    Raises:
        AutotrainError: There is none of that name, a package for it is missing, or an option is none of its arguments.
    """
    kind = _class_of("pruner", class_name, "`early_stop: {rule: 'optuna:CLASS'}`")
    _check_options(class_name, kind, options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is experimental in Optuna
        pruner: BasePruner = kind(**options)
    return pruner


def _class_of(kind: str, class_name: str, form: str) -> Any:  # noqa: ANN401 - a class of Optuna
    require(class_name, _PACKAGES.get(class_name, ()))
    module = import_module(f"optuna.{kind}s")
    names = [one for one in module.__all__ if inspect.isclass(getattr(module, one)) and not one.startswith("Base")]
    if class_name not in names:
        near = closest_match(class_name, names)
        raise AutotrainError(
            f"Optuna has no {kind} {class_name!r}.",
            f"Did you mean {near}?" if near else f"There are {', '.join(names)}.",
            f"Write {form}.",
        )
    return getattr(module, class_name)


def _from_hub(package: str, class_name: str) -> Callable[..., BaseSampler]:
    require(f"OptunaHub's {class_name}", (HUB,))
    try:
        module = import_module(HUB).load_module(package)
    except Exception as error:
        raise AutotrainError(
            f"OptunaHub's {package!r} cannot be loaded: {type(error).__name__}: {error}",
            "Its files come from github.com once, and are kept.",
            "Check its name at hub.optuna.org, and the network.",
        ) from error
    kind: Any = getattr(module, class_name, None)
    if not inspect.isclass(kind):
        names = [one for one in vars(module) if inspect.isclass(getattr(module, one))]
        near = closest_match(class_name, names)
        raise AutotrainError(
            f"OptunaHub's {package!r} has no class {class_name!r}.",
            f"Did you mean {near}?" if near else f"It has {', '.join(names)}.",
            "Write `tuner: {optunahub: PACKAGE, class: CLASS}`.",
        )
    return cast("Callable[..., BaseSampler]", kind)


def _check_options(class_name: str, kind: Callable[..., object], options: JsonObject) -> None:
    parameters = inspect.signature(kind).parameters
    needed = [one.name for one in parameters.values() if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
    known = [one for one in parameters if one != "seed"]
    if missing := [one for one in needed if one not in options and one not in {"args", "kwargs"}]:
        raise AutotrainError(
            f"{class_name} without {' and '.join(missing)}.", "It cannot do without.", "Add it, or use another tuner."
        )
    for option in options:
        if option not in known and "kwargs" not in parameters:
            near = closest_match(option, known)
            raise AutotrainError(
                f"{class_name} has no option {option!r}.",
                f"Did you mean {near!r}?" if near else f"It has {', '.join(known) or 'none'}.",
                "Correct it; `seed:` is a key of its own.",
            )

"""Parameter importances, as Optuna evaluates them. This module loads Optuna; it is loaded when first needed."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Final

from optuna.importance import FanovaImportanceEvaluator, PedAnovaImportanceEvaluator, get_param_importances

from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.space import Choice, NestedSpace, SearchSpace
from jupyter_autotrain.core.tuner import Observation
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.tuners.study import Study

EVALUATORS: Final = ("ped_anova", "fanova")
_SEED: Final = 0  # of the forest of fANOVA, so that it answers alike each time


def importances(
    space: SearchSpace, objective: Objective, trials: Iterable[Observation], evaluator: str
) -> dict[str, float]:
    """Return the importance of each parameter, the greatest first; their sum is 1.

    Args:
        space: The search space.
        objective: What the values are of.
        trials: The trials; those without a value do not count.
        evaluator: `ped_anova`, or `fanova`, which needs scikit-learn and knows no nested parameters.

    Raises:
        AutotrainError: There are too few values, or all alike; the evaluator is not known, or cannot be loaded.
    """
    if evaluator not in EVALUATORS:
        raise AutotrainError(
            f"There is no evaluator {evaluator!r}.", f"Expected {' or '.join(EVALUATORS)}.", "Correct its name."
        )
    study = Study(space, [objective], None)
    for trial in trials:
        if trial.values is not None:
            study.add(trial, None)
    try:
        found = _evaluated(study, evaluator)
    except ImportError:
        raise AutotrainError(
            "fANOVA is computed with scikit-learn, which is not installed.",
            "ped_anova needs nothing more.",
            "Install it: pip install scikit-learn",
        ) from None
    except (ValueError, RuntimeError, UserWarning) as error:
        raise AutotrainError(
            f"No importances of {objective.metric} can be computed: {error}",
            "Several trials with different values of it, and a search.",
            "Wait for more trials.",
        ) from None
    names = _names(space)
    return {names[path]: value for path, value in found.items()}


def _evaluated(study: Study, evaluator: str) -> dict[str, float]:
    is_fanova = evaluator == "fanova"
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # such as that all come out equal, for want of trials
        chosen = FanovaImportanceEvaluator(seed=_SEED) if is_fanova else PedAnovaImportanceEvaluator()
        return get_param_importances(study.snapshot(), evaluator=chosen)


def _names(space: SearchSpace, path: str = "", name: str = "") -> dict[str, str]:
    """Return the name of each coordinate for people, by its path: `net.big.width` of `net/0/width`."""
    found: dict[str, str] = {}
    for key, distribution in space.items():
        found[f"{path}{key}"] = f"{name}{key}"
        for index, option in enumerate(distribution.options if isinstance(distribution, Choice) else ()):
            if isinstance(option, NestedSpace):
                found |= _names(option.space, f"{path}{key}/{index}/", f"{name}{key}.{option.name}.")
    return found

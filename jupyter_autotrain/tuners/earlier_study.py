"""The trials of a study of Optuna that a search goes on from. This module loads Optuna; it is loaded when first needed.

They are read once, at submit, and kept in the spec: the search depends on no file that may change or go.
"""

from __future__ import annotations

from dataclasses import replace

import optuna
from optuna.trial import FrozenTrial, TrialState

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.core.space import SearchSpace
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.tuners.coordinates import read_back

EARLIER = "earlier"
STUDY = "study"
STUDY_NAME = "study_name"


def with_earlier_trials(spec: ExperimentSpec) -> ExperimentSpec:
    """Return the spec with the finished trials of the study that its tuner names, in place of the study's address.

    Raises:
        AutotrainError: The study cannot be read, has other directions, or no trial in the search space.
    """
    options = dict(spec.tuner_options)
    url = str(options.pop(STUDY))
    given = options.pop(STUDY_NAME, None)
    study = _load(url, None if given is None else str(given))
    _check_directions(spec, study)
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    earlier = [_plain(trial) for trial in complete if _lies_in(spec.search, trial)]
    if complete and not earlier:
        names = sorted({name for trial in complete for name in trial.params})
        raise AutotrainError(
            f"No trial of the study {study.study_name!r} is in the search space.",
            f"Its parameters are {', '.join(names)}; `search:` has {', '.join(spec.search) or 'none'}.",
            "Give them the same names and at least the same range.",
        )
    found: list[JsonValue] = [*earlier]
    return replace(spec, tuner_options={**options, EARLIER: found})


def _load(url: str, name: str | None) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        names = optuna.study.get_all_study_names(storage=url)
    except Exception as error:
        raise AutotrainError(
            f"The storage {url!r} of a study cannot be read: {type(error).__name__}: {error}",
            "The address of a storage of Optuna, such as sqlite:///study.db.",
            "Correct `study:`; a relative path counts from the notebook's folder.",
        ) from error
    if name not in names and not (name is None and len(names) == 1):
        near = closest_match(name or "", names)
        raise AutotrainError(
            f"The storage {url!r} has no study {name!r}." if name else f"The storage {url!r} has {len(names)} studies.",
            f"Did you mean {near!r}?" if near else f"It has {', '.join(names) or 'none'}.",
            "Write `study_name:` beside `study:`.",
        )
    return optuna.load_study(study_name=name or names[0], storage=url)


def _check_directions(spec: ExperimentSpec, study: optuna.Study) -> None:
    wanted = [str(objective.direction) for objective in spec.objectives]
    found = [direction.name.lower() for direction in study.directions]
    if wanted != found:
        raise AutotrainError(
            f"The study {study.study_name!r} is to {' and '.join(found)}, this search to {' and '.join(wanted)}.",
            "The same directions, in the same order.",
            "Correct `objective:`.",
        )


def _lies_in(space: SearchSpace, trial: FrozenTrial) -> bool:
    return space.keys() <= read_back(space, trial.params).keys()


def _plain(trial: FrozenTrial) -> JsonValue:
    return {"params": dict(trial.params), "values": list(trial.values)}

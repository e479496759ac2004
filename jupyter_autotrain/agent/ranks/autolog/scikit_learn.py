"""scikit-learn: the curves of estimators that train in rounds, the folds of a validation, candidates and scores."""

from __future__ import annotations

from functools import partial
from typing import Any

from jupyter_autotrain.agent.ranks.autolog.automatic_reports import AutomaticReports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

_LIBRARY = "scikit-learn"
_SCORED = ("ClassifierMixin", "RegressorMixin", "Pipeline", "BaseSearchCV")


def hook(reports: AutomaticReports, module: ModuleType) -> None:
    """Have the functions of one module report.

    Args:
        reports: Takes the values.
        module: A module of the library, which is imported.
    """
    parts = vars(module)
    for name in _SCORED:
        if name in parts and parts[name].__module__ == module.__name__:
            reports.wrap(parts[name], "score", partial(_score, reports), unless_from=("sklearn",))
    if module.__name__.endswith("._validation"):
        reports.wrap(module, "cross_validate", partial(_folds, reports), mutes=True)
    if "BaseSearchCV" in parts:
        reports.wrap(parts["BaseSearchCV"], "fit", partial(_candidates, reports), mutes=True)
    if "BaseMultilayerPerceptron" in parts:
        reports.wrap(parts["BaseMultilayerPerceptron"], "_update_no_improvement_count", partial(_epoch, reports))
    if "BaseGradientBoosting" in parts:
        reports.wrap(parts["BaseGradientBoosting"], "_fit_stage", partial(_stage_before, reports))
        reports.wrap(parts["BaseGradientBoosting"], "_fit_stages", partial(_last_stage, reports))
    if "BaseHistGradientBoosting" in parts:
        for name in ("_check_early_stopping_loss", "_check_early_stopping_scorer"):
            reports.wrap(parts["BaseHistGradientBoosting"], name, partial(_iteration, reports))


def _score(reports: AutomaticReports, result: object, *_: object, **__: object) -> None:
    """Report a result of `score(X, y)`: each call in the cell is a curve of its own, `score`, `score_2`, ..."""
    reports.add(_LIBRARY, None, {reports.name_of_call("score"): result})


def _folds(reports: AutomaticReports, result: dict[str, Any], *_: object, **__: object) -> None:
    """Report a cross-validation: `test_score` and the like, by fold."""
    _rows(reports, {name: values for name, values in result.items() if name.startswith(("test_", "train_"))})


def _candidates(reports: AutomaticReports, _: object, search: Any, *_more: object, **__: object) -> None:  # noqa: ANN401 - its estimator
    """Report a search: `mean_test_score` and the like, by candidate, and `best_score`."""
    found = search.cv_results_.items()
    _rows(reports, {name: values for name, values in found if name.startswith(("mean_test_", "mean_train_"))})
    reports.add(_LIBRARY, None, {"best_score": getattr(search, "best_score_", None)})


def _rows(reports: AutomaticReports, columns: dict[str, Any]) -> None:
    for row in range(len(next(iter(columns.values()), ()))):
        reports.add(_LIBRARY, row, {name: values[row] for name, values in columns.items()}, each_once=True)


def _epoch(reports: AutomaticReports, _: object, model: Any, *_more: object, **__: object) -> None:  # noqa: ANN401 - its estimator
    """Report an epoch of a multi-layer perceptron."""
    values = {"loss": model.loss_curve_[-1]}
    if model.early_stopping:
        values["validation_score"] = model.validation_scores_[-1]
    reports.add(_LIBRARY, len(model.loss_curve_) - 1, values, each_once=True)


def _stage_before(reports: AutomaticReports, _: object, model: Any, stage: int, *_more: object, **__: object) -> None:  # noqa: ANN401 - its estimator
    """Report the stage before this one, whose score is known by now."""
    if stage:
        reports.add(_LIBRARY, stage - 1, {"train_score": model.train_score_[stage - 1]}, each_once=True)


def _last_stage(reports: AutomaticReports, stages: int, model: Any, *_: object, **__: object) -> None:  # noqa: ANN401 - its estimator
    reports.add(_LIBRARY, stages - 1, {"train_score": model.train_score_[stages - 1]}, each_once=True)


def _iteration(reports: AutomaticReports, _: object, model: Any, *_more: object, **__: object) -> None:  # noqa: ANN401 - its estimator
    """Report an iteration of histogram-based boosting, which scores them where it may stop early."""
    values = {"train_score": model.train_score_[-1]}
    if len(model.validation_score_):
        values["validation_score"] = model.validation_score_[-1]
    reports.add(_LIBRARY, len(model.train_score_) - 1, values, each_once=True)

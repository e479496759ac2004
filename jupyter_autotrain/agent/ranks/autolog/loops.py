"""The training loops of transformers, Lightning, Keras and XGBoost: what each logs of a step is reported."""

from __future__ import annotations

from typing import Any

from jupyter_autotrain.agent.ranks.autolog.automatic_reports import AutomaticReports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


def hook(reports: AutomaticReports, module: ModuleType) -> None:
    """Have the loop of one library report.

    Args:
        reports: Takes the values.
        module: A module of the library, which is imported.
    """
    library = module.__name__.partition(".")[0]
    if library == "transformers":
        _transformers(reports, module)
    elif library in {"keras", "tf_keras"}:
        _keras(reports, module)
    elif library == "xgboost":
        _xgboost(reports, module)
    else:
        _lightning(reports, module, library)


def _transformers(reports: AutomaticReports, module: ModuleType) -> None:
    """Report the entries of `state.log_history`, at `state.global_step`."""

    def on_log(_: object, _handler: object, _args: object, state: Any, *_more: object, **_named: object) -> None:  # noqa: ANN401 - its TrainerState
        if state.is_world_process_zero:
            reports.add("transformers", state.global_step, state.log_history[-1])

    reports.wrap(module.CallbackHandler, "on_log", on_log)


def _lightning(reports: AutomaticReports, module: ModuleType, library: str) -> None:
    """Report what its loggers get, whether there is a logger or not."""

    def log_metrics(_: object, connector: Any, metrics: dict[str, Any], step: int | None = None) -> None:  # noqa: ANN401 - its connector
        trainer = connector.trainer
        if not trainer.is_global_zero:
            return
        if step is None:
            logged = metrics.get("step")
            step = trainer.fit_loop.epoch_loop._batches_that_stepped if logged is None else int(logged)  # noqa: SLF001 - the step its loggers get
        reports.add(library, step, metrics)

    reports.wrap(module._LoggerConnector, "log_metrics", log_metrics)  # noqa: SLF001 - as above


def _keras(reports: AutomaticReports, module: ModuleType) -> None:
    """Report what `History` keeps, by epoch."""

    def on_epoch_end(_: object, _callbacks: object, epoch: int, logs: dict[str, object] | None = None) -> None:
        reports.add("keras", epoch, logs or {}, each_once=True)

    reports.wrap(module.CallbackList, "on_epoch_end", on_epoch_end)


def _xgboost(reports: AutomaticReports, module: ModuleType) -> None:
    """Report `evals_result`, by round, as `data-metric`; of `xgboost.cv` the mean and `data-metric-std`."""

    def after_iteration(_: object, container: Any, _model: object, epoch: int, *_more: object) -> None:  # noqa: ANN401 - its CallbackContainer
        values: dict[str, object] = {}
        for data, metrics in container.history.items():
            for metric, scores in metrics.items():
                last = scores[-1]
                values[f"{data}-{metric}"] = last[0] if isinstance(last, tuple) else last
                if isinstance(last, tuple):
                    values[f"{data}-{metric}-std"] = last[1]
        reports.add("xgboost", epoch, values, each_once=True)

    reports.wrap(module.CallbackContainer, "after_iteration", after_iteration)

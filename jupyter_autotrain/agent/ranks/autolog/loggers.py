"""Loggers that a cell uses (wandb, trackio, TensorBoard, MLflow): what they get is reported too, and stays unchanged.

Calls of libraries whose loops report by themselves are left out: their values would come twice, under two names.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from jupyter_autotrain.agent.ranks.autolog.automatic_reports import AutomaticReports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

_LOOPS = ("transformers", "lightning", "pytorch_lightning", "keras", "xgboost")


def hook(reports: AutomaticReports, module: ModuleType) -> None:
    """Have the calls of one logger reported.

    Args:
        reports: Takes the values.
        module: A module of the library, which is imported.
    """
    library = module.__name__.partition(".")[0]
    wrap = partial(reports.wrap, is_logger=True, unless_from=_LOOPS)
    if library == "wandb":
        name = "NoopRun" if module.__name__.endswith("noop_run") else "Run"
        wrap(getattr(module, name), "log", _Wandb(reports).log)
    elif library == "trackio":
        wrap(module.Run, "log", partial(_trackio, reports))
    elif library == "mlflow":
        wrap(module, "log_metric", partial(_mlflow_metric, reports))
        wrap(module, "log_metrics", partial(_mlflow_metrics, reports))
    else:
        wrap(module.SummaryWriter, "add_scalar", partial(_scalar, reports))
        wrap(module.SummaryWriter, "add_scalars", partial(_scalars, reports))


class _Wandb:
    """The calls of `wandb.log`, counted as wandb counts them: one without a step ends its step, unless told not to.

    Args:
        reports: Takes the values.
    """

    def __init__(self, reports: AutomaticReports) -> None:
        self._reports = reports
        self._step = 0

    def log(
        self, _: object, _run: object, data: Mapping[str, object], step: int | None = None, commit: bool | None = None
    ) -> None:
        """Report the values of a call."""
        self._step = self._step if step is None else max(self._step, step)
        self._reports.add("wandb", self._step, data)
        self._step += commit if commit is not None else step is None


def _trackio(
    reports: AutomaticReports, _: object, run: Any, metrics: Mapping[str, object], step: int | None = None  # noqa: ANN401 - its Run
) -> None:  # fmt: skip
    reports.add("trackio", getattr(run, "_next_step", None) if step is None else step, metrics)


def _mlflow_metric(
    reports: AutomaticReports, _: object, key: str, value: object, step: int | None = None, *_more: object, **__: object
) -> None:
    reports.add("mlflow", step, {key: value})


def _mlflow_metrics(
    reports: AutomaticReports, _: object, metrics: Mapping[str, object], step: int | None = None, *_more: object,
    **__: object,
) -> None:  # fmt: skip
    reports.add("mlflow", step, metrics)


def _scalar(
    reports: AutomaticReports, _: object, _writer: object, tag: str, scalar_value: object,
    global_step: int | None = None, *_more: object, **__: object,
) -> None:  # fmt: skip
    reports.add("tensorboard", global_step, {tag: scalar_value})


def _scalars(
    reports: AutomaticReports, _: object, _writer: object, main_tag: str, tag_scalar_dict: Mapping[str, object],
    global_step: int | None = None, *_more: object, **__: object,
) -> None:  # fmt: skip
    reports.add("tensorboard", global_step, {f"{main_tag}/{tag}": value for tag, value in tag_scalar_dict.items()})

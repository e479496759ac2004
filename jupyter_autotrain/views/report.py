"""One experiment as one HTML file: it needs no server, no network and no script."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from typing import Final

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.objective import ranked
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.table import Table
from jupyter_autotrain.core.text_format import count, cut, duration, number, parameter
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.views import parameter_plots, plots, trial_plots
from jupyter_autotrain.views.card_content import CardContent, without_paths
from jupyter_autotrain.views.series import objective_first
from jupyter_autotrain.views.summary import parameter_names

_MOST_FOR_FANOVA: Final = 500  # trials: its time grows with their square
_METRICS: Final = 12
_TRIALS: Final = 1_000
_MOST_PARAMETERS: Final = 12  # with a panel of their own
_STYLE: Final = """\
:root{color-scheme:light dark}
body{font:14px/1.45 system-ui,sans-serif;max-width:760px;margin:24px auto;padding:0 16px}
h1{font-size:22px;margin:0 0 4px}h2{font-size:17px;margin:28px 0 8px}
figure{margin:0 0 16px}figcaption{margin:0 0 4px}img{max-width:100%}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:13px}
th,td{text-align:left;padding:3px 12px 3px 0;vertical-align:top;border-bottom:1px solid #8884;white-space:nowrap}
td:last-child{white-space:normal}pre{background:#8881;padding:10px;overflow-x:auto}summary{cursor:pointer}"""


def html(experiment: Experiment, *, by: str | Sequence[str] = (), over: str | Sequence[str] = ()) -> str:
    """Return the document: summary, curves, trials, Pareto front, parameters, use of nodes, header.

    Each plot has its table.

    Args:
        experiment: The experiment.
        by: Parameters; curves of groups of trials that are equal in these are shown, too.
        over: The only parameters in which the trials of a group differ: instead of `by`.
    """
    record = experiment.record
    trials = ranked(record.spec.objective, experiment.store.trials(experiment.id))
    content = CardContent(record, trials, record.now_s(time.time(), BootTime.now()), experiment.warnings())
    head = [f"<h1>{escape(content.name)}</h1>", f"<p>{record.state} · {escape(content.progress())}</p>"]
    head += [f"<p>{escape(text)}</p>" for text in (content.best(), content.reason, *content.warnings) if text]
    sections = [
        ("Curves", "".join(_curves(experiment, by, over))),
        ("Trials", f'<div class="wide">{_trial_table(trials, content.objective).html()}</div>'),
        ("Pareto front", _made(partial(plots.pareto, experiment, None, None)) if record.spec.more_objectives else ""),
        ("Parameters", "".join(_searched(experiment))),
        ("Use of nodes", _usage(experiment)),
        ("Header", f"<pre>{escape(record.spec.header)}</pre>" if record.spec.header else ""),
    ]
    body = "".join(f"<section><h2>{title}</h2>{part}</section>" for title, part in sections if part)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(content.name)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body>{''.join(head)}{body}</body></html>\n"
    )


def _curves(experiment: Experiment, by: str | Sequence[str], over: str | Sequence[str]) -> list[str]:
    names = objective_first(experiment.record.spec, experiment.store.metric_names(experiment.id))
    parts = []
    for name in names[:_METRICS]:
        parts.append(plots.curves(experiment, name).html())
        if by or over:
            parts.append(plots.curves(experiment, name, by=by, over=over).html())
    left = [cut(name, 40) for name in names[_METRICS:]]
    return [*parts, f"<p>Not shown: {escape(', '.join(left))}</p>"] if left else parts


def _searched(experiment: Experiment) -> list[str]:
    """Return the plots of a search with an objective: contour of the two parameters that matter most, too."""
    spec = experiment.record.spec
    names = [*spec.search][:_MOST_PARAMETERS]
    if spec.objective is None or not names:
        return []
    made: list[Callable[[], plots.Plot]] = [
        partial(trial_plots.parallel, experiment, names, None),
        partial(parameter_plots.slices, experiment, names, None),
    ]
    if len(names) > 1:
        made.insert(0, partial(plots.importances, experiment, None, "ped_anova"))
        if experiment.record.ended <= _MOST_FOR_FANOVA:
            made.insert(1, partial(plots.importances, experiment, None, "fanova"))
        made.append(partial(_contour, experiment))
    return [*map(_made, made)]


def _contour(experiment: Experiment) -> plots.Plot:
    first, second = [name.partition(".")[0] for name in experiment.importances()][:2]
    return parameter_plots.contour(experiment, first, second, None)


def _usage(experiment: Experiment) -> str:
    try:
        return trial_plots.usage(experiment).html()
    except AutotrainError:  # all trials were too short to be watched
        return ""


def _made(plot: Callable[[], plots.Plot]) -> str:
    """Return a plot, or the reason why it cannot be made."""
    try:
        return plot().html()
    except AutotrainError as error:
        return f"<p>{escape(str(error).partition(chr(10))[0])}</p>"


def _trial_table(trials: Sequence[TrialRecord], value: str) -> Table:
    names = parameter_names(trials)
    heads = ["trial", "state", value or "value", *names, "from", "started", "took", "reason"]
    rows = []
    for trial in trials[:_TRIALS]:
        took_s = trial.took_s()
        started = "" if trial.started_s is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(trial.started_s))
        params = [cut(parameter(trial.params.get(name, "")), 40) for name in names]
        took = "" if took_s is None else duration(took_s)
        shown = "" if trial.value is None else number(trial.value)
        reason = cut(without_paths(trial.reason), 120)
        begun = [trial.started_from, started, took]
        rows.append([str(trial.number), str(trial.state), shown, *params, *begun, reason])
    left = len(trials) - len(rows)
    return Table(heads, rows, more=f"and {count(left, 'more trial')}" if left else "")

"""What a round brings, stored: the curves of the global model, and why clients were refused."""

from __future__ import annotations

from jupyter_autotrain.agent.states import FinalState, TrialState
from jupyter_autotrain.core.federated import RoundNews
from jupyter_autotrain.manager.experiment_run import ExperimentRun
from jupyter_autotrain.store import Ingest

_STREAM = "global"  # what a round brings counts as read from it, so that no round counts twice


def take_news(run: ExperimentRun, news: RoundNews) -> None:
    """Store the curves of the global model, with the first client; tell refused clients; end what has failed."""
    now_s = run.now_s()
    rows = []
    if news.round:
        points = [(name, news.round, now_s, value) for name, value in news.metrics.items()]
        attempt = run.trials[1].attempt
        objective = run.record.spec.objective
        rows.append(Ingest(run.id, 1, attempt, _STREAM, news.round, points, objective=objective))
    for number, text in news.refused.items():
        note = (now_s, "warning", text, 1)
        rows.append(Ingest(run.id, number, run.trials[number].attempt, _STREAM, 0, notes=[note], cursor_before=0))
    if rows:
        run.context.retry_store(run.context.store.ingest, rows)
    if news.failure:
        run.cancel_all(FinalState(TrialState.FAILED, news.failure))

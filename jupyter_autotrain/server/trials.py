"""Operations on trials: the table, curves, pictures and what they use."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.core.notes import announced_pictures, picture_of
from jupyter_autotrain.core.objective import ranked
from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord
from jupyter_autotrain.errors import StoreError
from jupyter_autotrain.server.context import ServerContext
from jupyter_autotrain.server.endpoint import WRITTEN_BY_A_TRIAL, Answer, Endpoint, ExperimentAsked, TrialAsked
from jupyter_autotrain.server.problems import not_found
from jupyter_autotrain.store import Store
from jupyter_autotrain.views.json_objects import more_values, trial_json
from jupyter_autotrain.views.series import curves_json
from jupyter_autotrain.views.trial_plots import usage_json

_RESOURCE: Final = "autotrain.experiments"
_MOST_PICTURES: Final = 500


class TrialsAsked(ExperimentAsked):
    """Which page of the trials, in which order."""

    sort: Literal["number", "best"] = "number"
    state: str = Field("", max_length=20, pattern=r"^[A-Z_]*$", description="Only trials in this state.")
    changed_after: int = Field(
        0, ge=0, le=1 << 62, description="A `last_state_change`: only trials that can have changed since; 0: all."
    )
    offset: int = Field(0, ge=0, le=10_000_000)
    limit: int = Field(200, ge=1, le=5000)


class SeriesAsked(ExperimentAsked):
    """Which curves, and how many points of them."""

    metric: str = Field(min_length=1, max_length=500)
    trials: str = Field("", max_length=4000, pattern=r"^(\d{1,9}(,\d{1,9})*)?$", description="Numbers, by commas.")
    max_points: int = Field(2000, ge=4, le=20_000, description="Of all curves together; extremes stay.")


class PictureAsked(TrialAsked):
    """Which picture."""

    attempt: int = Field(ge=1, le=100_000)
    name: str = Field(max_length=60, pattern=r"^\d{4,9}(-step-\d{1,19})?\.(png|jpg|svg)$")


def list_trials(server: ServerContext, asked: TrialsAsked) -> Answer:
    """Answer with a page of the trials."""
    with server.stores.reading() as store:
        record = store.experiment(asked.experiment)
        last_change_id = store.last_state_change_id(asked.experiment)  # first: what changes meanwhile comes again
        total, page = _page(store, record, asked)
        reasons = store.block_reasons(asked.experiment)
        rows: list[JsonValue] = []
        for trial in page:
            more = more_values(store, record, trial.number)
            rows.append({**trial_json(trial), "more_values": more, "blocked_by": reasons.get(trial.number, "")})
    return Answer({"total": total, "last_state_change": last_change_id, "trials": rows})


def _page(store: Store, record: ExperimentRecord, asked: TrialsAsked) -> tuple[int, list[TrialRecord]]:
    """Return the number of trials, and those of the page.

    When all trials are asked for by number, only those of the page are read.
    """
    if asked.changed_after:
        trials = store.trials_since(record.id, asked.changed_after)
    elif asked.sort == "number" and not asked.state:
        return sum(record.counts.values()), store.trials(record.id, offset=asked.offset, limit=asked.limit)
    else:
        trials = store.trials(record.id)
    chosen = [trial for trial in trials if not asked.state or trial.state.value == asked.state]
    ordered = ranked(record.spec.objective, chosen) if asked.sort == "best" else chosen
    return len(chosen), ordered[asked.offset : asked.offset + asked.limit]


def show_series(server: ServerContext, asked: SeriesAsked) -> Answer:
    """Answer with the curves of one metric."""
    trials = set(map(int, asked.trials.split(","))) if asked.trials else None
    with server.stores.reading() as store:
        return Answer(curves_json(store, asked.experiment, asked.metric, trials, asked.max_points))


def show_usage(server: ServerContext, asked: TrialAsked) -> Answer:
    """Answer with the use that each attempt of a trial makes or has made of its node."""
    with server.stores.reading() as store:
        trial = trial_record(store, store.experiment(asked.experiment), asked.trial)
    return Answer(usage_json(server.home, trial))


def list_pictures(server: ServerContext, asked: ExperimentAsked) -> Answer:
    """Answer with the newest pictures that trials have kept."""
    with server.stores.reading() as store:
        notes = store.notes(asked.experiment)
    rows: list[JsonValue] = []
    for picture in announced_pictures(notes)[-_MOST_PICTURES:]:
        name = picture.name.rpartition("/")[2]
        rows.append({"trial": picture.trial, "attempt": picture.attempt, "name": name, "step": picture.step})
    return Answer({"pictures": rows})


def show_picture(server: ServerContext, asked: PictureAsked) -> Answer:
    """Answer with the bytes of a picture.

    Where a browser is led to one as a page, nothing in it runs or loads.
    """
    with server.stores.reading() as store:
        record = store.experiment(asked.experiment)
    picture = picture_of(asked.trial, asked.attempt, f"pictures/{asked.name}")
    data = picture.read(server.home.trial(record.id, asked.trial, asked.attempt)) if picture else b""
    if picture is None or not data:
        raise not_found(f"picture {asked.name} of trial {asked.trial}", "A name that the list of pictures has.")
    return Answer(data, content_type=picture.mime_type, headers=WRITTEN_BY_A_TRIAL)


def trial_record(store: Store, record: ExperimentRecord, number: int) -> TrialRecord:
    """Return a trial of an experiment; that there is none is answered as a problem."""
    try:
        return store.trial(record.id, number)
    except StoreError as error:
        raise not_found(f"trial {number} in {record.label}", error.expected) from None


ENDPOINTS: Final = (
    Endpoint(
        "GET", "/experiments/{experiment}/trials", _RESOURCE, "A page of the trials", TrialsAsked, list_trials,
        {"total": "integer", "last_state_change": "integer", "trials": "array"},
    ),
    Endpoint(
        "GET", "/experiments/{experiment}/series", _RESOURCE, "Curves of one metric", SeriesAsked, show_series,
        {"metric": "string", "curves": "array", "left_out": "array"},
    ),
    Endpoint(
        "GET", "/experiments/{experiment}/pictures", _RESOURCE, "The newest pictures", ExperimentAsked, list_pictures,
        {"pictures": "array"},
    ),
    Endpoint(
        "GET", "/experiments/{experiment}/trials/{trial}/usage", _RESOURCE, "What a trial uses of its node", TrialAsked,
        show_usage, {"attempts": "array"},
    ),
    Endpoint(
        "GET", "/experiments/{experiment}/trials/{trial}/attempts/{attempt}/pictures/{name}", _RESOURCE,
        "The bytes of a picture", PictureAsked, show_picture,
        content_types=("image/png", "image/jpeg", "image/svg+xml"),
    ),
)  # fmt: skip

"""Operations on experiments: the list, one of them, its notebook, tags, note, code and reasons."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from jupyter_autotrain import manager
from jupyter_autotrain.agent import files
from jupyter_autotrain.agent.json import JsonObject, to_json
from jupyter_autotrain.capture.bundle import PLAN
from jupyter_autotrain.core.notes import summarize_warnings
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.errors import UnknownExperimentError
from jupyter_autotrain.server.context import ServerContext, check_owner
from jupyter_autotrain.server.endpoint import Answer, Asked, Endpoint, ExperimentAsked
from jupyter_autotrain.server.problems import not_found, problem
from jupyter_autotrain.store import Store
from jupyter_autotrain.views.experiment_list import ListQuery, experiment_json, experiments_json, notebooks_json

_RESOURCE: Final = "autotrain.experiments"
_MOST_CODE_BYTES: Final = 1 << 20
_WARNINGS: Final = 20
_EMPTY: Final[JsonObject] = {
    "total": 0, "groups": {"queued": 0, "running": 0, "done": 0}, "notebooks": {}, "tags": [], "places": [],
    "metrics": [], "last_change_id": 0, "now_s": 0.0, "experiments": [],
}  # fmt: skip

Tag = Annotated[str, StringConstraints(min_length=1, max_length=40, pattern=r"^[^\x00-\x1f\x7f,]+$")]


class ListAsked(Asked):
    """Which experiments, in which order, which page."""

    text: str = Field("", max_length=200, description="Part of a name, tag, note or notebook.")
    group: Literal["", "queued", "running", "done"] = Field("", description="Only this group.")
    state: Literal["", "WAITING", "RUNNING", "STOPPING", "SUCCEEDED", "FAILED", "CANCELLED"] = Field(
        "", description="Only experiments in this state."
    )
    tag: str = Field("", max_length=40, description="Only experiments with this tag.")
    place: str = Field("", max_length=200, description="Only those that may use this backend.")
    metric: str = Field(
        "", max_length=200, description="Only those that have reported this metric or are ranked by it."
    )
    notebook: str | None = Field(None, max_length=4096, description="Only those submitted from this notebook.")
    since_s: float | None = Field(None, description="Only those submitted then or later; seconds since the epoch.")
    until_s: float | None = Field(None, description="Only those submitted before then.")
    sort: Literal[
        "created", "ended", "took", "name", "state", "trials", "best", "metric", "place", "notebook", "tags"
    ] = Field("created", description="best: by the value of the best trial; descending means the better first.")
    order: Literal["ascending", "descending"] = "descending"
    grouping: Literal["none", "state"] = Field(
        "none", description="state: what runs first, then what waits, then what is done; each in this order."
    )
    offset: int = Field(0, ge=0, le=1_000_000)
    limit: int = Field(50, ge=1, le=200)


class AnnotationAsked(ExperimentAsked):
    """New tags or a new note; what is not given stays."""

    tags: list[Tag] | None = Field(None, max_length=20)
    note: str | None = Field(None, max_length=4000)


def list_experiments(server: ServerContext, asked: ListAsked) -> Answer:
    """Answer with a page of the experiments."""
    query = ListQuery(
        **asked.model_dump(exclude={"order", "grouping"}),
        is_descending=asked.order == "descending",
        by_group=asked.grouping == "state",
    )
    alive = manager.status(server.home).alive
    try:
        with server.stores.reading() as store:
            return Answer({**experiments_json(store, query), "manager": {"alive": alive}})
    except UnknownExperimentError:  # there is no home yet, and reading makes none
        return Answer({**_EMPTY, "manager": {"alive": alive}})


def list_notebooks(server: ServerContext, _: Asked) -> Answer:
    """Answer with the notebooks that experiments were submitted from."""
    check_owner(server.home)
    try:
        with server.stores.reading() as store:
            return Answer({"notebooks": notebooks_json(store)})
    except UnknownExperimentError:  # there is no home yet, and reading makes none
        return Answer({"notebooks": []})


def show_experiment(server: ServerContext, asked: ExperimentAsked) -> Answer:
    """Answer with one experiment and the details that a panel shows of it."""
    with server.stores.reading() as store:
        record = store.experiment(asked.experiment)
        return Answer({**experiment_json(store, record), **_details(server, store, record)})


def _details(server: ServerContext, store: Store, record: ExperimentRecord) -> JsonObject:
    spec = record.spec
    warnings = [f"{node}." for node in store.unreachable_nodes(record.id)]
    warnings += summarize_warnings(store.notes(record.id), _WARNINGS)
    if not record.state.is_final and (held := manager.stopped_by_signal(server.home)):
        warnings.insert(0, held)
    return {
        "metrics": store.metric_names(record.id),
        "warnings": warnings,
        "concurrency": spec.concurrency,
        "tuner": spec.tuner,
        "search": to_json(spec.search),
        "resources": to_json(spec.resources),
        "launcher": spec.launcher,
        "elastic": spec.elastic,
        "backends": [choice.profile.name for choice in spec.backends],
        "header": spec.header,
        "has_plan": (server.home.bundle(record.id) / PLAN).is_file(),
        "notebook_path": notebook_path(spec.origin.notebook, server.root),
        "manager": {"alive": manager.status(server.home).alive},
    }


def notebook_path(notebook: str, root: Path) -> str:
    """Return the path of a notebook as the Jupyter server names it; "" where it does not show it."""
    path = Path(notebook)
    if not notebook or not path.is_relative_to(root):
        return ""
    return path.relative_to(root).as_posix()


def annotate(server: ServerContext, asked: AnnotationAsked) -> Answer:
    """Set the tags or the note of an experiment."""
    with server.writing(asked.experiment) as experiment:
        kept = experiment.store.annotate_experiment(asked.experiment, tags=asked.tags, note=asked.note)
    return Answer({"tags": list(kept.tags), "note": kept.note})


def show_code(server: ServerContext, asked: ExperimentAsked) -> Answer:
    """Answer with the captured script, and the names that were captured."""
    with server.stores.reading() as store:
        record = store.experiment(asked.experiment)
    bundle = record.spec.bundle
    try:
        data = files.read(server.home.bundle(record.id), bundle.script, _MOST_CODE_BYTES)
    except OSError:
        found = f"The code of {record.label} is no longer kept."
        raise problem(HTTPStatus.NOT_FOUND, found, "The captured script.", "Run its cell again.") from None
    return Answer(
        {
            "script": data.decode("utf-8", errors="replace"),
            "header": record.spec.header,
            "captured": list(map(to_json, bundle.captured)),
            "differences": list(bundle.differences),
            "source_map": list(bundle.source_map),
        }
    )


def show_plan(server: ServerContext, asked: ExperimentAsked) -> Answer:
    """Answer with the plan of splitting the model, as it was made at submit."""
    with server.stores.reading() as store:
        record = store.experiment(asked.experiment)
    try:
        plan = files.read_json(server.home.bundle(record.id), PLAN)
    except (OSError, ValueError):
        plan = None
    if not isinstance(plan, dict):
        raise not_found(f"plan of {record.label}", "An experiment whose header has `parallel:`.")
    return Answer(plan)


def show_why(server: ServerContext, asked: ExperimentAsked) -> Answer:
    """Answer with the reasons why trials wait or have failed."""
    with server.stores.reading() as store:
        record = store.experiment(asked.experiment)
        return Answer({"sentences": manager.explain(store, server.home, record)})


ENDPOINTS: Final = (
    Endpoint(
        "GET", "/experiments", _RESOURCE, "A page of the experiments", ListAsked, list_experiments,
        {
            "total": "integer", "groups": "object", "notebooks": "object", "tags": "array", "places": "array",
            "metrics": "array", "last_change_id": "integer", "now_s": "number", "experiments": "array",
        },
    ),
    Endpoint(
        "GET", "/notebooks", _RESOURCE, "The notebooks that experiments were submitted from", Asked, list_notebooks,
        {"notebooks": "array"},
    ),
    Endpoint(
        "GET", "/experiments/{experiment}", _RESOURCE, "One experiment", ExperimentAsked, show_experiment,
        {"id": "string", "name": "string", "state": "string", "metrics": "array", "warnings": "array"},
    ),
    Endpoint(
        "PATCH", "/experiments/{experiment}", _RESOURCE, "Set the tags or the note", AnnotationAsked, annotate,
        {"tags": "array", "note": "string"},
    ),
    Endpoint(
        "GET", "/experiments/{experiment}/code", _RESOURCE, "The captured code", ExperimentAsked, show_code,
        {"script": "string", "header": "string", "captured": "array", "differences": "array"},
    ),
    Endpoint(
        "GET", "/experiments/{experiment}/plan", _RESOURCE, "The plan of the split", ExperimentAsked, show_plan,
        {"name": "string", "cluster": "object", "mesh": "object", "cost": "object", "candidates": "array"},
    ),
    Endpoint(
        "GET", "/experiments/{experiment}/why", _RESOURCE, "Why trials wait or have failed", ExperimentAsked, show_why,
        {"sentences": "array"},
    ),
)  # fmt: skip

"""Operations on what trials printed: a part of it, a match in it, all of it as a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord
from jupyter_autotrain.server.context import ServerContext
from jupyter_autotrain.server.endpoint import WRITTEN_BY_A_TRIAL, Answer, Endpoint, TrialAsked
from jupyter_autotrain.server.problems import problem
from jupyter_autotrain.server.trials import trial_record
from jupyter_autotrain.views.log_search import MOST_CHARACTERS, MOST_MATCHES, search_json
from jupyter_autotrain.views.log_window import MOST_BYTES, file_name, log_json

_RESOURCE: Final = "autotrain.experiments"


class StreamAsked(TrialAsked):
    """Which of the streams that a trial printed."""

    stream: Literal["stdout", "stderr", "launcher"] = "stdout"
    rank: int = Field(0, ge=0, le=100_000)
    attempt: int = Field(0, ge=0, le=100_000, description="0: the present one.")


class LogAsked(StreamAsked):
    """Which part of what a trial printed."""

    begin_bytes: int = Field(-1, ge=-1, le=1 << 50, description="Where to begin; -1: at the end, so many bytes.")
    most_bytes: int = Field(65_536, ge=1, le=MOST_BYTES)


class SearchAsked(StreamAsked):
    """A search in the output of a trial."""

    text: str = Field(min_length=1, max_length=MOST_CHARACTERS, description="Small and capital letters are the same.")
    match: int = Field(1, ge=1, le=MOST_MATCHES, description="Which of the matches; beyond the last: the last.")


@dataclass(frozen=True, slots=True)
class _Stream:
    """A stream of an attempt of a trial; `is_over`: nothing is added to it any more."""

    record: ExperimentRecord
    trial: TrialRecord
    attempt: int
    name: str
    directory: Path

    @property
    def is_over(self) -> bool:
        return self.trial.state.is_final or self.attempt != self.trial.attempt


@contextmanager
def _stream(server: ServerContext, asked: StreamAsked) -> Iterator[_Stream]:
    """Look up a stream; an error that keeps it from being read in the context is answered as a problem."""
    with server.stores.reading() as store:
        record = store.experiment(asked.experiment)
        trial = trial_record(store, record, asked.trial)
    attempt = asked.attempt or trial.attempt
    name = asked.stream if asked.stream == wire.LAUNCHER_LOG else wire.stream_of_rank(asked.stream, asked.rank)
    try:
        yield _Stream(record, trial, attempt, name, server.home.trial(record.id, trial.number, attempt))
    except OSError as error:
        found = f"The {name} of trial {trial.number} cannot be read: {error.strerror}."
        expected = "The regular file that was there when the trial began."
        raise problem(HTTPStatus.CONFLICT, found, expected, "Take the other stream.") from None


def show_log(server: ServerContext, asked: LogAsked) -> Answer:
    """Answer with a part of a trial's output, as it was printed."""
    begin_bytes = None if asked.begin_bytes < 0 else asked.begin_bytes
    with _stream(server, asked) as stream:
        window = log_json(stream.directory, stream.name, begin_bytes, asked.most_bytes)
    return Answer({**window, "attempt": stream.attempt, "final": stream.is_over})


def search_log(server: ServerContext, asked: SearchAsked) -> Answer:
    """Answer with one match of a text in all that a trial printed, with the lines around it."""
    with _stream(server, asked) as stream:
        return Answer(search_json(stream.directory, stream.name, asked.text, asked.match))


def download_log(server: ServerContext, asked: StreamAsked) -> Answer:
    """Answer with all that a trial printed, as a file.

    Where a browser is led to it as a page, it is text.
    """
    with _stream(server, asked) as stream:
        try:
            file = files.open_regular(stream.directory, stream.name)
        except OSError as error:
            if not files.is_absent(error):
                raise
            file = None
    name = file_name(stream.record.label, stream.trial.number, stream.attempt, stream.name)
    headers = {**WRITTEN_BY_A_TRIAL, "Content-Disposition": f'attachment; filename="{name}"'}
    return Answer(b"", content_type="text/plain; charset=utf-8", headers=headers, file=file)


ENDPOINTS: Final = (
    Endpoint(
        "GET", "/experiments/{experiment}/trials/{trial}/log", _RESOURCE, "What a trial printed", LogAsked, show_log,
        {"text": "string", "begin_bytes": "integer", "end_bytes": "integer", "size_bytes": "integer"},
    ),
    Endpoint(
        "GET", "/experiments/{experiment}/trials/{trial}/log/matches", _RESOURCE, "A match in what a trial printed",
        SearchAsked, search_log,
        {"total": "integer", "match": "integer", "text": "string", "left_out": "string", "place": "integer"},
        is_slow=True,
    ),
    Endpoint(
        "GET", "/experiments/{experiment}/trials/{trial}/log/file", _RESOURCE, "All that a trial printed", StreamAsked,
        download_log, content_types=("text/plain",),
    ),
)  # fmt: skip

"""The requests of a view about the log of a trial, checked, and the answers that need no following."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.views.log_search import MOST_CHARACTERS, NOTHING_FOUND, search_json
from jupyter_autotrain.views.log_window import file_name

_STREAMS: Final = ("stdout", "stderr")
_MOST_FILE_BYTES: Final = 16_000_000  # of a message to a page


@dataclass(frozen=True, slots=True)
class LogRequest:
    """The log that is asked for: `attempt` as it was asked, 0 for the present one, which is `found_attempt`.

    `label` is the experiment's.
    """

    label: str
    trial: int
    attempt: int
    found_attempt: int
    stream: str
    rank: int
    directory: Path

    @property
    def name(self) -> str:
        """The file's name in its directory."""
        return wire.stream_of_rank(self.stream, self.rank)

    @property
    def path(self) -> Path:
        """The path of the stream's file."""
        return self.directory / self.name

    @property
    def json(self) -> JsonObject:
        """The members that each answer repeats."""
        return {"trial": self.trial, "attempt": self.attempt, "stream": self.stream, "rank": self.rank}

    @classmethod
    def of(cls, experiment: Experiment, content: Mapping[str, Any]) -> LogRequest | None:
        """Return the request that a message makes; None when it names no log.

        Raises:
            AutotrainError: There is no such trial or rank.
        """
        stream = content.get("stream")
        trial, attempt, rank = (content.get(name, 0) for name in ("trial", "attempt", "rank"))
        if stream not in _STREAMS or not all(isinstance(number, int) for number in (trial, attempt, rank)):
            return None
        experiment.check_rank(rank)
        record = experiment.store.trial(experiment.id, trial)
        found_attempt = attempt or record.attempt
        directory = experiment.home.trial(experiment.id, trial, found_attempt)
        return cls(experiment.name, trial, attempt, found_attempt, stream, rank, directory)

    def found(self, content: Mapping[str, Any]) -> JsonObject | None:
        """Return the match that a message asks for by `query` and `match`; None when it asks for nothing."""
        query = content.get("query")
        match = content.get("match")
        if not isinstance(query, str) or not 0 < len(query) <= MOST_CHARACTERS or not isinstance(match, int):
            return None
        try:
            found = search_json(self.directory, self.name, query, max(match, 1))
        except OSError as error:
            found = {**NOTHING_FOUND, "text": f"(it cannot be read: {error.strerror})"}
        return {"kind": "found", **self.json, "query": query, **found}

    def as_file(self) -> tuple[JsonObject, bytes]:
        """Return the message and the bytes of the whole log; of one that is too long for a message, where it lies."""
        name = file_name(self.label, self.trial, self.found_attempt, self.name)
        told: JsonObject = {"kind": "file", **self.json, "name": name, "text": ""}
        try:
            data = files.read(self.directory, self.name, _MOST_FILE_BYTES + 1)
        except OSError as error:
            if files.is_absent(error):
                return told, b""
            return {**told, "text": f"It cannot be read: {error.strerror}."}, b""
        if len(data) <= _MOST_FILE_BYTES:
            return told, data
        size = format_bytes(self.path.stat().st_size)
        return {**told, "text": f"It has {size}, too much for this page. It is in {self.path}"}, b""

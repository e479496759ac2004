"""The reading side of the log channel: lines of a job's log become bytes of the trial's files, by their offsets.

Lines that come twice or in another order change nothing; what is missing is seen as a gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, cast

from jupyter_autotrain.agent import files
from jupyter_autotrain.agent.pods import frames, places
from jupyter_autotrain.backends.local.trial_directory import MOST_BYTES
from jupyter_autotrain.backends.log_channel.collected import CollectedNode, CollectedTrial, GapError
from jupyter_autotrain.core.backend import Chunk, Cursor

_MOST_LINES: Final = 20
_MOST_LINE = 500
_LEFT_OUT = b"\n[%d bytes are missing here: the log of the job was cut]\n"


class LogReader:
    """Reads the log of one job, or of one pod.

    Args:
        trial: Where its bytes go.
        job_id: The trial, where the log may be that of several.
        node: The node of the trial that writes the log, where it is known already.

    Attributes:
        printed: The last lines that are no frames, for messages.
        node: The node of the trial that writes the log, once it is known.
    """

    def __init__(self, trial: CollectedTrial, job_id: str = "", node: CollectedNode | None = None) -> None:
        self.printed: list[str] = []
        self.node = trial.nodes[0] if len(trial.nodes) == 1 else node
        self._trial = trial
        self._job_id = job_id
        self._is_of_another = bool(job_id)  # until its log says that it is of this one

    def read(self, lines: Iterable[str]) -> Iterator[tuple[CollectedNode, frames.Frame]]:
        """Yield the frames in lines of the log, those that follow each other as one, each with its node."""
        pending: frames.Frame | None = None
        for line in lines:
            frame = frames.decode(line)
            if frame is None:
                self.printed = [*self.printed, line[:_MOST_LINE]][-_MOST_LINES:]
            elif pending is not None and pending.goes_on_in(frame):
                pending.data += frame.data
            else:
                yield from self._of_trial(pending)
                pending = frame
        yield from self._of_trial(pending)

    def _of_trial(self, frame: frames.Frame | None) -> Iterator[tuple[CollectedNode, frames.Frame]]:
        if frame is None:
            return
        if frame.path == places.JOB:
            self._is_of_another = frame.data.decode(errors="replace") != self._job_id
        elif self._is_of_another:
            return
        elif frame.path == places.NODE:
            if frame.data.isdigit():  # else the trial has made it up
                self.node = self._trial.node(int(frame.data))
        elif self.node is not None:  # else it comes before a pod of several says which it is
            yield self.node, frame

    def keep(
        self, lines: Iterable[str], *, is_whole: bool, fetch: Callable[[GapError], bytes] | None = None
    ) -> tuple[bool, bool]:
        """Keep what a part of the log says; what that cannot tell, of bytes before it, is left for the whole log.

        Args:
            lines: Of the log, in order, newest last.
            is_whole: Whether the service has no more of it: what is missing then is marked as missing.
            fetch: Gives missing bytes from the trial itself; None where it cannot be asked.

        Returns:
            Whether anything was new, and whether something is missing.

        Raises:
            OSError: It cannot be written.
        """
        is_new = has_gap = False
        later = []
        for node, frame in self.read(lines):
            try:
                is_new |= _append(node, frame)
            except GapError:
                has_gap = True
                later.append((node, frame))
        for node, frame in sorted(later, key=lambda one: one[1].offset):  # of a log that came in another order
            try:
                is_new |= _append(node, frame)
            except GapError as gap:
                data = fetch(gap) if fetch is not None else b""
                node.append(gap.path, gap.begin, data)
                is_missing = len(data) < gap.end - gap.begin
                if is_missing and not is_whole:
                    return is_new, True
                mark_missing(node, gap, len(data))
                is_new |= _append(node, frame)
        return is_new, has_gap and not is_whole and fetch is None


def read_stream(trial: CollectedTrial, cursor: Cursor) -> Chunk:
    """Return what has come of a stream; of one that a trial has for each rank, on the node of that rank."""
    rank = cursor.stream.partition("-")[2]
    workers = cast("int", cursor.ref.data.get("workers") or 1)
    directory = trial.node(int(rank) // workers if rank.isdigit() else 0).directory
    try:
        return Chunk(cursor, files.read(directory, cursor.stream, MOST_BYTES, cursor.offset))
    except OSError as error:
        fault = "" if files.is_absent(error) else f"its {cursor.stream} cannot be read: {error.strerror}"
        return Chunk(cursor, b"", fault)


def _append(node: CollectedNode, frame: frames.Frame) -> bool:
    try:
        return node.append(frame.path, frame.offset, frame.data)
    except ValueError:  # a path that the trial has made up
        return False


def mark_missing(node: CollectedNode, gap: GapError, known_bytes: int) -> None:
    """Say in a stream that bytes of it are missing.

    Args:
        node: Its node.
        gap: Which they are.
        known_bytes: How many of their first ones are there since.

    Raises:
        OSError: It cannot be written.
    """
    missing = gap.end - gap.begin - known_bytes
    if missing:
        text = _LEFT_OUT % missing
        node.append(gap.path, gap.begin + known_bytes, text[:missing].ljust(missing, b"\n"))

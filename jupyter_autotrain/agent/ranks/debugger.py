"""pdb in a rank, whose commands come as files and whose output is a stream: no terminal and no port.

`breakpoint()` in the cell, or an exception where the header has `post_mortem: true`, stops the rank until somebody
opens it (`%autotrain debug NAME RANK`) and lets it go on. Commands are files `control/debug-RANK-...`, one line of text
each, read in the order of their names. The stream `debug` has a line of JSON for each thing told: `{"out": text}`,
`{"prompt": place}` when the rank waits for a command, `{"left": place}` when it goes on. While a rank is stopped,
`control/stopped-RANK` says where; the supervisor tells that to the user, and pauses the trial's limits of time.
"""

from __future__ import annotations

import contextlib
import json
import os
import pdb
import time
from collections.abc import Callable, Mapping
from types import FrameType, TracebackType

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.ranks.failure import script_of_bundle

_LOOK_S = 0.05
_OURS = "jupyter_autotrain.agent.*"  # what runs the cell is not stepped into
_RUNNER = "/agent/ranks/cell_runner.py"
_MOST_CHARACTERS = 200
_MOST_COMMAND_BYTES = 1 << 16
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class RankDebugger(pdb.Pdb):
    """The debugger of one rank.

    Args:
        place: Names a line of a file as users know it.
        directory: The trial directory.
        rank: The rank.
        redact: Takes secrets out of a text.
    """

    def __init__(
        self, place: Callable[[str, int], str], directory: str, rank: int, redact: Callable[[str], str]
    ) -> None:
        super().__init__(skip=[_OURS], stdin=self, stdout=self, nosigint=True, readrc=False)  # type: ignore[arg-type]  # it reads and writes lines
        self.use_rawinput = False
        self.prompt = ""
        self._name_of = place
        self._directory = directory
        self._rank = rank
        self._redact = redact
        self._stream = os.open(f"{directory}/{wire.stream_of_rank(wire.DEBUG, rank)}", _APPEND, 0o600)
        self._mark = f"{directory}/{wire.STOPPED}{rank}"
        self._place = ""

    def mark(self, text: str) -> None:
        """Mark the rank as stopped."""
        with contextlib.suppress(OSError):  # a full disk: it is stopped nevertheless
            wire.write_atomically(self._mark, text.encode(), sync=False)

    def preloop(self) -> None:
        """Mark the rank as stopped, also where it has gone on to a breakpoint that was set here."""
        super().preloop()
        if not os.path.exists(self._mark):
            self.mark("a breakpoint")

    def get_stack(self, f: FrameType | None, t: TracebackType | None) -> tuple[list[tuple[FrameType, int]], int]:
        """Return the frames of the cell, without those that run it."""
        frames, index = super().get_stack(f, t)
        outer = [number for number, (frame, _) in enumerate(frames) if frame.f_code.co_filename.endswith(_RUNNER)]
        first = outer[-1] + 1 if outer and outer[-1] < index else 0
        return frames[first:], index - first

    def do_continue(self, arg: str) -> bool | None:
        """Let the rank go on."""
        self._leave()
        return super().do_continue(arg)

    do_c = do_cont = do_continue

    def do_quit(self, arg: str) -> bool | None:
        """End the cell by an exception, or after an exception go on with its failure."""
        self._leave()
        return super().do_quit(arg)

    do_q = do_exit = do_quit

    def do_EOF(self, arg: str) -> bool | None:  # noqa: N802 - pdb's own name
        """Do what `quit` does."""
        return self.do_quit(arg)

    def _leave(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._mark)
        self._tell({"left": self._place})

    def write(self, text: str) -> int:
        """Take what pdb prints."""
        if text:
            self._tell({"out": self._redact(text)})
        return len(text)

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def readline(self) -> str:
        """Return the next command; waits for it as long as it takes."""
        if self.curframe is not None:
            self._place = self._name_of(self.curframe.f_code.co_filename, self.curframe.f_lineno)
        self._tell({"prompt": self._place})
        while True:
            for name in sorted(os.listdir(f"{self._directory}/{wire.CONTROL}")):
                if name.startswith(f"debug-{self._rank}-") and not name.endswith(wire.DRAFT):
                    return self._take(f"{self._directory}/{wire.CONTROL}/{name}")
            time.sleep(_LOOK_S)

    def _take(self, path: str) -> str:
        with open(path, "rb") as file:
            line = file.read(_MOST_COMMAND_BYTES).decode(errors="replace")
        os.unlink(path)
        return f"{line.splitlines()[0] if line.strip() else ''}\n"

    def _tell(self, frame: dict[str, str]) -> None:
        with contextlib.suppress(OSError):  # a full disk: the rank is still to be released
            os.write(self._stream, json.dumps(frame).encode() + b"\n")


class Debugging:
    """The stops of a rank: `breakpoint()`, and exceptions where the header says so.

    Args:
        trial: `TrialSpec` as JSON.
        directory: The trial directory.
        rank: The rank.
        redact: Takes secrets out of a text.
    """

    def __init__(
        self,
        trial: Mapping[str, object],
        directory: str,
        rank: int,
        redact: Callable[[str], str],
    ) -> None:
        bundle = str(trial["bundle"])
        self._script = script_of_bundle(f"{bundle}/{trial['script']}", bundle, f"{directory}/{wire.WORK}")
        self._debugger = RankDebugger(self._script.place, directory, rank, redact)

    def stop_at(self, frame: FrameType) -> None:
        """Stop before the next line of a frame."""
        self._tell("breakpoint()", frame)
        self._debugger.set_trace(frame)

    def examine(self, error: BaseException) -> None:
        """Stop where an exception was raised; returns when the debugger is left."""
        what = f"{type(error).__name__}: {error}"[:_MOST_CHARACTERS]
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_next is not None:
            traceback = traceback.tb_next
        self._tell(what, None if traceback is None else traceback.tb_frame)
        self._debugger.write(f"{what}\n")
        self._debugger.reset()
        self._debugger.interaction(None, error.__traceback__)

    def _tell(self, why: str, frame: FrameType | None) -> None:
        place = "" if frame is None else f" ({self._script.place(frame.f_code.co_filename, frame.f_lineno)})"
        self._debugger.mark(f"{why}{place}")

"""The supervisor takes the stacks of its ranks: on a request, and where several have reported nothing for long.

What is needed at each rank is a signal and a short wait; the supervisor does nothing else meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.supervisor.ranks import Ranks
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity
from jupyter_autotrain.agent.trial import stacks

_ANSWER_S = 3.0
_LOOK_S = 0.05
_STILL = 4  # looks without a new byte: the rank has written all
_MOST_TAG_BYTES = 100
_MOST_BYTES = 1 << 20
_SPY_S = 10.0
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_NOT_THERE = "It has ended, or not begun."
_SILENT = "It did not answer: its interpreter has not begun, a signal holds it, or the cell handles SIGURG itself."


class StackTaker:
    """The stacks of the ranks of one node.

    Args:
        trial: `TrialSpec` as JSON.
        ranks: The ranks of this node.
        env: The variables of the trial.
    """

    def __init__(self, trial: Mapping[str, object], ranks: Ranks, env: Mapping[str, str]) -> None:
        self._ranks = ranks
        self._env = env
        self._trial = trial
        limit = trial.get("stall_s")
        is_first = any(worker.rank == 0 for worker in ranks.workers)  # the others need not report
        self._stall_s = float(limit) if isinstance(limit, (int, float)) and is_first else 0.0
        self._stopped: dict[int, str] = {}
        self._reported_bytes = 0
        self._since_s = time.monotonic()
        self._next_s = 0.0

    def advance(self) -> None:
        """Take the stacks where that is due; never raises, as they are worth no trial."""
        now_s = time.monotonic()
        with contextlib.suppress(Exception):
            self._tell_stopped()
            if tag := self._request():
                self.take(tag)
            if self._stall_s and now_s >= self._next_s:
                self._next_s = now_s + min(1.0, self._stall_s / 4)
                self._look_for_reports(now_s)

    def is_any_stopped(self) -> bool:
        """Tell whether a rank of this node stands in its debugger."""
        return any(os.path.exists(f"{wire.STOPPED}{worker.rank}") for worker in self._ranks.workers)

    def _tell_stopped(self) -> None:
        """Leave a note of each rank that has come to stand in its debugger since the last look."""
        for worker in self._ranks.workers:
            text = ""
            with contextlib.suppress(FileNotFoundError), open(f"{wire.STOPPED}{worker.rank}", "rb") as file:
                text = file.read(_MOST_TAG_BYTES * 10).decode(errors="replace")
            if text and self._stopped.get(worker.rank) != text:
                paused = " The trial's limit of time is paused." if self._trial.get("timeout_s") else ""
                opened = f"Open it: %autotrain debug NAME {worker.rank}."
                _note(f"Rank {worker.rank} has stopped at {text}. {opened}{paused}")
            self._stopped[worker.rank] = text

    def _request(self) -> str:
        """Return the tag of a new request, or ""."""
        try:
            with open(wire.STACKS_FILE, "rb") as file:
                tag = file.read(_MOST_TAG_BYTES).decode(errors="replace")
        except FileNotFoundError:
            return ""
        os.unlink(wire.STACKS_FILE)
        return tag

    def _look_for_reports(self, now_s: float) -> None:
        reported_bytes = self._metrics_bytes()
        if reported_bytes != self._reported_bytes or self.is_any_stopped():
            self._reported_bytes = reported_bytes
            self._since_s = now_s
        elif now_s - self._since_s >= self._stall_s:
            self._since_s = float("inf")  # once, until something is reported again
            places = self.take("stall")
            _note(f"Nothing was reported for {self._stall_s:g} s: {stacks.sentence(places)}.")
            self._reported_bytes = self._metrics_bytes()

    def _metrics_bytes(self) -> int:
        total = 0
        for worker in self._ranks.workers:
            with contextlib.suppress(FileNotFoundError):
                total += os.stat(wire.stream_of_rank(wire.METRICS, worker.rank)).st_size
        return total

    def take(self, tag: str) -> dict[int, str]:
        """Have each rank write its stacks; gives where each of them stands."""
        paths = {worker.rank: wire.stream_of_rank(wire.STACKS, worker.rank) for worker in self._ranks.workers}
        begun = {rank: stacks.begin(path, tag) for rank, path in paths.items()}
        asked = {}
        for worker in self._ranks.workers:
            identity = ProcessIdentity.from_json(worker.process)
            if worker.is_running and identity is not None and identity.is_alive():
                with contextlib.suppress(OSError):
                    os.kill(identity.pid, stacks.SIGNAL)
                asked[worker.rank] = identity.pid
        _wait_for(paths, begun, asked)
        places = {}
        for rank, path in paths.items():
            text = _text_from(path, begun[rank])
            if not text and rank in asked:
                text = self._spied(asked[rank])
                _append(path, text)
            fault = _SILENT if rank in asked else _NOT_THERE
            places[rank] = self._place(text) if text else "a state that it does not tell"
            stacks.end(path, tag, places[rank], "" if text else fault)
        return places

    def _place(self, text: str) -> str:
        from jupyter_autotrain.agent.ranks.failure import script_of_bundle  # noqa: PLC0415 - only trials that are asked pay

        bundle = str(self._trial.get("bundle"))
        path = f"{bundle}/{self._trial.get('script')}"
        script = script_of_bundle(path, bundle, f"{self._trial.get('directory')}/{wire.WORK}")
        return stacks.place(stacks.main_thread(text), script.owns, script.place)

    def _spied(self, pid: int) -> str:
        """Return the stacks as py-spy sees them from outside, where it is installed and may look; else ""."""
        import shutil  # noqa: PLC0415 - only trials that do not answer pay
        import subprocess  # noqa: PLC0415 - the same

        beside = os.path.join(os.path.dirname(str(self._trial.get("python"))), "py-spy")
        program = beside if os.path.exists(beside) else shutil.which("py-spy", path=self._env.get("PATH"))
        if program is None:
            return ""
        argv = [program, "dump", "--json", "--pid", str(pid)]
        try:
            done = subprocess.run(argv, capture_output=True, timeout=_SPY_S, check=True)
            found = json.loads(done.stdout)
        except (OSError, ValueError, subprocess.SubprocessError):
            return ""
        lines = []
        for thread in sorted(found, key=lambda one: one.get("thread_name") == "MainThread"):
            lines.append(f"Thread {thread.get('thread_name')} (most recent call first):")
            lines += [f'  File "{one["filename"]}", line {one["line"]} in {one["name"]}' for one in thread["frames"]]
        return "\n".join(lines) + "\n"


def _wait_for(paths: Mapping[int, str], begun: Mapping[int, int], asked: Mapping[int, int]) -> None:
    """Wait until each of the ranks that were asked has written, and writes no more; or for as long as that may take."""
    deadline_s = time.monotonic() + _ANSWER_S
    sizes = dict(begun)
    still = dict.fromkeys(asked, 0)
    while time.monotonic() < deadline_s:
        for rank in asked:
            size = os.stat(paths[rank]).st_size
            still[rank] = still[rank] + 1 if size == sizes[rank] and size > begun[rank] else 0
            sizes[rank] = size
        if all(looks >= _STILL for looks in still.values()):
            return
        time.sleep(_LOOK_S)


def _text_from(path: str, offset: int) -> str:
    with open(path, "rb") as file:
        file.seek(offset)
        return file.read(_MOST_BYTES).decode(errors="replace")


def _append(path: str, text: str) -> None:
    fd = os.open(path, _APPEND, 0o600)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _note(text: str) -> None:
    """Leave a note among what the trial reports."""
    path = wire.METRICS
    is_new = not os.path.exists(path) or not os.stat(path).st_size
    begin = json.dumps(["v", wire.VERSION]) + "\n" if is_new else ""
    _append(path, begin + json.dumps(["n", time.time(), "warning", text]) + "\n")

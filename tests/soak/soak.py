"""The soak: notebooks that submit and read for many rounds, while managers come and go by themselves and by force.

    python tests/soak/soak.py [--rounds 28] [--users 2] [--trials 22] [--calm] [--idle-min 0.01] [--seed 1]

Ends with status 1 when anything acknowledged was lost, doubled or left over. `make soak` runs it.
"""

from __future__ import annotations

import argparse
import os
import queue
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parent))
from check import Kept, check, processes_of
from disturb import Disturber
from user import STEPS

from jupyter_autotrain import manager
from jupyter_autotrain.agent.pool import warm_list
from jupyter_autotrain.agent.service import warm_starts
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.store import Store

ROUND_LIMIT_S = 300.0


class User:
    """One notebook process and what it has said."""

    def __init__(self) -> None:
        self.kept: dict[str, Kept] = {}
        self.said: queue.Queue[str] = queue.Queue()
        self.process = self._start()

    def _start(self) -> psutil.Popen:
        argv = [sys.executable, str(Path(__file__).parent / "user.py")]
        process = psutil.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._listen, args=(process,), daemon=True).start()
        return process

    def _listen(self, process: psutil.Popen) -> None:
        for line in process.stdout:
            words = line.split()
            if words[0] == "kept":
                self.kept[words[1]] = Kept(int(words[2]), int(words[3]))
            self.said.put(words[0])
        self.said.put("ended")  # also when it was killed

    def tell(self, line: str) -> None:
        """Have it do something; a killed one is started anew."""
        if self.process.poll() is not None:
            self.process = self._start()
        while not self.said.empty():
            self.said.get()
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def has_said(self, word: str) -> bool:
        """Tell whether it has said so since it was last told something, or has ended."""
        while not self.said.empty():
            if self.said.get() in {word, "ended"}:
                return True
        return False

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()


class Soak:
    """All rounds in one home."""

    def __init__(self, home: Home, options: argparse.Namespace) -> None:
        self.home = home
        self.options = options
        self.users = [User() for _ in range(options.users)]
        self.disturber = Disturber(home, random.Random(options.seed))
        self.idle_exits = 0

    def run(self) -> None:
        """All rounds; each ends when the idle manager has gone by itself."""
        for number in range(self.options.rounds):
            for index, user in enumerate(self.users):
                user.tell(f"submit {number * len(self.users) + index} {self.options.trials}")
            self._until_all("ended", disturb=not self.options.calm)
            self.disturber.settle()
            for user in self.users:
                user.tell("look")
            self._until_all("seen", disturb=False)
            self._await_idle_exit()

    def _until_all(self, word: str, *, disturb: bool) -> None:
        waiting = list(self.users)
        deadline_s = time.monotonic() + ROUND_LIMIT_S
        while waiting:
            assert time.monotonic() < deadline_s, f"a user never said {word!r}"
            waiting = [user for user in waiting if not user.has_said(word)]
            if disturb:
                self.disturber.act([user.process for user in self.users])
            time.sleep(0.02)

    def _await_idle_exit(self) -> None:
        """Whoever was killed does not wait for its experiment; so somebody else does, as a client would."""
        deadline_s = time.monotonic() + ROUND_LIMIT_S + 60 * self.options.idle_min
        with Store.open(self.home) as store:
            while store.unfinished():
                assert time.monotonic() < deadline_s, "experiments never end"
                manager.ensure(self.home)
                time.sleep(0.05)
        warm_list.end_all(self.home.root / warm_starts.FOLDER)  # they would wait a minute for another trial
        while processes_of(self.home):
            assert time.monotonic() < deadline_s, f"still there: {processes_of(self.home)}"
            time.sleep(0.05)
        self.idle_exits += 1

    def kept(self) -> dict[str, Kept]:
        """Everything that was acknowledged."""
        return {experiment_id: kept for user in self.users for experiment_id, kept in user.kept.items()}

    def close(self) -> None:
        """End the users."""
        for user in self.users:
            user.close()


def main() -> int:
    """Soak, check, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=28)
    parser.add_argument("--users", type=int, default=2)
    parser.add_argument("--trials", type=int, default=22)
    parser.add_argument("--calm", action="store_true", help="no kills, no pauses: ordinary use only")
    parser.add_argument("--idle-min", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    begun_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        home = Home(Path(folder) / "home")
        os.environ |= {"JUPYTER_AUTOTRAIN_HOME": str(home.root), "JUPYTER_AUTOTRAIN_IDLE_MIN": str(options.idle_min)}
        soak = Soak(home, options)
        try:
            soak.run()
        finally:
            soak.close()
        found = check(home, soak.kept(), STEPS)
    figures = {
        "experiments": len(soak.kept()), "trials": found.trials, "points compared": found.points,
        "idle exits": soak.idle_exits, **soak.disturber.counts, "seconds": round(time.monotonic() - begun_s),
    }  # fmt: skip
    print(", ".join(f"{name} {figure}" for name, figure in figures.items()))
    for fault in found.faults:
        print("FAULT:", fault)
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main())

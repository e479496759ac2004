"""Measure a cell of a session on this machine, from its sending to its end, against the limit of 200 ms."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from jupyter_autotrain.client.rerun import Dialogue
from jupyter_autotrain.client.sessions.handle import Session
from jupyter_autotrain.client.sessions.opening import SessionRequest, open_session
from jupyter_autotrain.core.home import Home

LIMIT_MS = 200.0
CELLS = 50


def took_ms(session: Session, pause_s: float) -> list[float]:
    """Return what each cell took; before each one nothing is asked for a while."""
    took = []
    for number in range(CELLS):
        time.sleep(pause_s)
        begun = time.perf_counter()
        session.run(f"print({number})")
        took.append(1000 * (time.perf_counter() - begun))
    return sorted(took)


def main() -> None:
    """Measure cells that follow each other at once, and cells after a pause, when less is looked for."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        opened = open_session(SessionRequest("lab"), Home(Path(folder)), Path(folder), None, Dialogue(str, input))
        with Session(opened) as session:
            print(f"session open: {time.perf_counter() - begun:.2f} s, with a manager that was not there")
            for name, pause_s in (("at once", 0.0), ("after 1 s", 1.0)):
                took = took_ms(session, pause_s)
                median, worst = statistics.median(took), took[round(0.95 * CELLS) - 1]
                print(
                    f"cells {name}: median {median:.1f} ms, 95 % within {worst:.1f} ms; limit {LIMIT_MS:g}; "
                    f"ratio {LIMIT_MS / median:.1f}"
                )
            session.close_session()


if __name__ == "__main__":
    main()

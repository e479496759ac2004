"""One notebook of the soak: it submits when told, keeps every handle it ever had, and reads in between.

Lines in: `submit SEED TRIALS`, `look`.
Lines out: `kept ID SEED TRIALS` once a submit is acknowledged, `ended ID`, `seen`.
"""

from __future__ import annotations

import sys

import jupyter_autotrain as at

STEPS = 30
SOURCE = """
import time
for step in range({steps}):
    report(step=step, value={seed} * 1000 + step, copy=lr)
    if step % 10 == 0:
        time.sleep(0.02)
"""


def tell(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def submit(seed, trials):
    handle = at.submit(
        SOURCE.format(steps=STEPS, seed=seed),
        name=f"soak{seed % 5}",
        search={"lr": "uniform(0, 1)"},
        tuner="random",
        objective="maximize value",
        trials=trials,
        concurrency=4,
    )
    tell("kept", handle.id, seed, trials)
    at.experiments()
    handle.wait()
    tell("ended", handle.id)
    return handle


def main():
    handles = []
    for line in sys.stdin:
        verb, *words = line.split()
        if verb == "submit":
            handles.append(submit(*map(int, words)))
        else:
            handles += at.experiments(limit=3)
            for handle in handles[-3:]:
                handle.metrics()
            tell("seen")


if __name__ == "__main__":
    main()

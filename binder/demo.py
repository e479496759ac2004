"""Train one small experiment to its end, so that the sidebar has something to show; nothing where there is one."""

from __future__ import annotations

import sys

import jupyter_autotrain as at

LONGEST_S = 300
TRAINING = """
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier

X, y = load_digits(return_X_y=True)
X = X / 16
model = SGDClassifier(loss="log_loss", alpha=alpha, penalty=penalty, random_state=0)
for epoch in range(30):
    model.partial_fit(X[:1400], y[:1400], classes=range(10))
    report(step=epoch, train_acc=model.score(X[:1400], y[:1400]), val_acc=model.score(X[1400:], y[1400:]))
print("done:", model.score(X[1400:], y[1400:]))
"""


def main() -> int:
    """Submit and wait; the exit status is 0 when a finished experiment is there."""
    found = at.experiments()
    experiment = found[0] if found else at.submit(
        TRAINING, name="digits-demo", objective="maximize val_acc", trials=8, concurrency=2, seed=7,
        search={"alpha": "loguniform(1e-6, 1e-1)", "penalty": "choice(l1, l2)"},
    )  # fmt: skip
    has_ended = experiment.wait(LONGEST_S)
    sys.stdout.write(f"{experiment}\n")
    return 0 if has_ended else 1


if __name__ == "__main__":
    sys.exit(main())

"""Where things lie on the volume of the profile's `storage:`, as pods see it.

```
data/archives/SHA256/                        an archive, unpacked
experiments/HOME/EXPERIMENT/archives/SHA256  an empty file: the experiment uses that archive
experiments/HOME/EXPERIMENT/NUMBER-ATTEMPT/  what a trial keeps: `checkpoints`, or `node-N` with all its files
environments/                                virtual environments
```

HOME is the identity of a home: what is its own can be told from what others have there.
"""

from __future__ import annotations

STORAGE = "/autotrain/storage"
EXPERIMENTS = f"{STORAGE}/experiments"
DATA = f"{STORAGE}/data"
ENVIRONMENTS = f"{STORAGE}/environments"


def attempt(home: str, experiment: str, number: int | str, attempt: int | str) -> str:
    """The name of a trial and its attempt below `EXPERIMENTS`."""
    return f"{home}/{experiment}/{number}-{attempt}"


def trial_directory(attempt: str, node: int) -> str:
    """The trial directory of a node of a trial.

    Args:
        attempt: As `attempt` names it.
        node: Its number among the nodes of the trial.
    """
    return f"{EXPERIMENTS}/{attempt}/node-{node}"


def checkpoints(attempt: str) -> str:
    """What a trial that is not rescaled has saved; of several nodes each rank has a folder of its own in it."""
    return f"{EXPERIMENTS}/{attempt}/checkpoints"

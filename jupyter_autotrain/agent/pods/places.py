"""The places of things in a pod, and on the volume of the profile's `storage:` as pods see it.

```
data/archives/SHA256/                        an archive, unpacked; or SHA256/SHA256/, a folder that was sent
experiments/HOME/EXPERIMENT/archives/SHA256  an empty file: the experiment uses that archive
experiments/HOME/EXPERIMENT/NUMBER-ATTEMPT/  what a trial keeps: `checkpoints`, or `node-N` with all its files
environments/                                virtual environments
```

HOME is the identity of a home: what is its own can be told from what others have there. Runs on both sides, in the pod
with Python 3.9.
"""

from __future__ import annotations

from jupyter_autotrain.agent.objects import agent_archive
from jupyter_autotrain.agent.program import PROGRAM

CODE = "/autotrain/code"  # what was sent, read-only
RUN = "/autotrain/run"  # what the pod makes of it
TRIAL_DIRECTORY = f"{RUN}/trial"
AGENT = "/autotrain/agent"  # in memory: what the pod runs, unpacked
AGENT_ARCHIVE = agent_archive.NAME
TRIAL_FILE = "trial.json"  # where it is too long for a variable

BUNDLE = "bundle"  # the name of an archive, as CHECKPOINTS
CHECKPOINTS = "checkpoints"
TRIAL = "trial"  # below RUN, as the following: the trial directory
STATES = "states"  # every content of status.json, one a line
FILES = "files.json"  # what the trial has left: {"sizes": {path: bytes}, "left": [paths that are not in the log]}
RELEASED = "released"  # there when all that a job has written is collected, and it need not wait any more
NODE = "node"  # in the log only: which node of the trial the pod is

TRIAL_VARIABLE = "AUTOTRAIN_TRIAL"
POD_VARIABLE = "AUTOTRAIN_POD"
REUSE_IDLE = "reuse_idle_s"  # of what stands in POD_VARIABLE: there where trials are run one after another
JOB_VARIABLE = "AUTOTRAIN_JOB"  # which of them
JOB = "job"  # a frame that says which trial the following frames are of
FIRST_ADDRESS_VARIABLE = "AUTOTRAIN_FIRST_ADDRESS"
DATA_PREFIX = "data."  # of the names of archives with data
CREDENTIAL_PREFIX = "AUTOTRAIN_STORAGE_"  # of variables with the credentials of the storage, which no trial gets

START_REQUEST = f"{AGENT}/code/{PROGRAM}"
STORAGE = "/autotrain/storage"
EXPERIMENTS = f"{STORAGE}/experiments"
DATA = f"{STORAGE}/data"
ENVIRONMENTS = f"{STORAGE}/environments"


def attempt(home: str, experiment: str, number: int | str, attempt: int | str) -> str:
    """Return the name of a trial and its attempt below `EXPERIMENTS`."""
    return f"{home}/{experiment}/{number}-{attempt}"


def trial_directory(attempt: str, node: int) -> str:
    """Return the trial directory of a node of a trial.

    Args:
        attempt: As `attempt` names it.
        node: Its number among the nodes of the trial.
    """
    return f"{EXPERIMENTS}/{attempt}/node-{node}"


def checkpoints(attempt: str) -> str:
    """Return the folder of the checkpoints of a trial that is not rescaled.

    With several nodes each rank has a folder of its own in it.
    """
    return f"{EXPERIMENTS}/{attempt}/checkpoints"

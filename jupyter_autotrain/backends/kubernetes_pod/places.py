"""Where things lie in a pod. Runs on both sides, in the pod with Python 3.9."""

from __future__ import annotations

CODE = "/autotrain/code"  # what was sent, read-only
RUN = "/autotrain/run"  # what the pod makes of it
TRIAL_DIRECTORY = f"{RUN}/trial"
AGENT = "/autotrain/agent"  # in memory: what the pod runs, unpacked
AGENT_ARCHIVE = "agent.zip"
BUNDLE_ARCHIVE = "bundle.tar.gz"
RESUME_ARCHIVE = "resume.tar.gz"  # the checkpoints that the trial goes on from
TRIAL_FILE = "trial.json"  # where it is too long for a variable

BUNDLE = "bundle"  # below RUN, as the following
RESUME = "resume"
CHECKPOINTS = "checkpoints"  # also the name of an archive, as BUNDLE
TRIAL = "trial"  # the trial directory
STATES = "states"  # every content of status.json, one a line
FILES = "files.json"  # what the trial has left: {"sizes": {path: bytes}, "left": [paths that are not in the log]}
NODE = "node"  # in the log only: which node of the trial the pod is
ACKNOWLEDGED = "acknowledged"  # everything was fetched: the pod need not linger

TRIAL_VARIABLE = "AUTOTRAIN_TRIAL"
POD_VARIABLE = "AUTOTRAIN_POD"
REUSE_IDLE = "reuse_idle_s"  # of what stands in POD_VARIABLE: there where trials are run one after another
JOB_VARIABLE = "AUTOTRAIN_JOB"  # which of them
JOB = "job"  # a frame that says which trial the following frames are of
FIRST_ADDRESS_VARIABLE = "AUTOTRAIN_FIRST_ADDRESS"
DATA_PREFIX = "data."  # of the names of archives with data
CREDENTIAL_PREFIX = "AUTOTRAIN_STORAGE_"  # of variables with the credentials of the storage, which no trial gets
TOKEN_VARIABLE = "AUTOTRAIN_TOKEN"  # noqa: S105 - its name: by it the pods of a trial know each other

START_REQUEST = f"{AGENT}/code/jupyter_autotrain/backends/kubernetes_pod/start_request.py"

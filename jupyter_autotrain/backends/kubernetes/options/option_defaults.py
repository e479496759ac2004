"""What holds where neither a profile nor a header says otherwise. Plain numbers and texts: the manager reads them."""

from __future__ import annotations

IMAGE = "python:3.12-slim"
PYTHON = "python3"
GPU_RESOURCE = "nvidia.com/gpu"
LINGER_S = 120.0
TTL_S = 3 * 86_400.0
START_TIMEOUT_S = 600.0
REUSE_IDLE_S = 60.0
TASK_ROLE = "worker"
BARRIER_IMAGE = "frameworkcontroller/frameworkbarrier"

"""A pod that is told to end before its trial has begun."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.agent.pods.pod import PREEMPTED_CODE

PROGRAM = """
import os, sys
from jupyter_autotrain.agent.pods.pod import Pod
sys.exit(Pod(os.environ, sys.argv[1], sys.argv[2]).main())
"""


def test_a_pod_that_is_told_to_end_while_it_fetches_data_ends_at_once(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        archive = {"name": "data.train", "sha256": "0" * 64, "remote": {"http": {"url": url}}, "file": "x.tar"}
        environ = {**os.environ, places.TRIAL_VARIABLE: json.dumps({"archives": [archive]})}
        argv = [sys.executable, "-c", PROGRAM, str(tmp_path / "run"), str(tmp_path / "code")]
        with subprocess.Popen(argv, env=environ) as pod:
            try:
                connection, _ = silent.accept()
                pod.terminate()
                assert pod.wait(40) == PREEMPTED_CODE  # a fetch waits for longer
                connection.close()
            finally:
                pod.kill()

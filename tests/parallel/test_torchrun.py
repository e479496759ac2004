"""A script under the real torchrun, without this package's trials: the loop that one process runs, unchanged."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.parallel import planning, training

SCRIPT = """
import json, sys
from pathlib import Path
from tests.parallel import training
folder = Path(sys.argv[1])
found = training.train("gpt2", (folder / "plan.json").read_text(), max_norm=0.1)
if training.torch.distributed.get_rank() == 0:
    (folder / "losses.json").write_text(json.dumps(found.losses))
training.torch.distributed.destroy_process_group()
"""
SLOWEST_S = 250  # two processes that import torch and transformers on a machine that others use


@pytest.mark.long
@pytest.mark.parametrize("row", ["DDP, accumulated", "FSDP, recomputed, accumulated", "tensor and sequence"])
def test_a_script_under_torchrun_has_the_losses_of_one_process(tmp_path, row):
    (tmp_path / "plan.json").write_text(planning.planned("gpt2", row, 2).to_json())
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    root = str(Path(__file__).parents[2])
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": root}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script, tmp_path]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=SLOWEST_S, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    losses = json.loads((tmp_path / "losses.json").read_text())
    assert losses == pytest.approx(training.train("gpt2", max_norm=0.1).losses, abs=1e-5)

"""Tests of what is sent to a cluster, and what there may make room for it."""

from __future__ import annotations

from pathlib import Path

from jupyter_autotrain.backends.slurm.cluster import LocalCluster, login_host
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile


def test_nothing_on_a_login_node_makes_room_as_slurm_may_begin_its_job_at_any_time() -> None:
    config = login_host(Profile("cluster", "slurm", {"via": "login1", "workdir": "/scratch/at"}))
    assert config is not None
    assert (config.cache_limit_bytes, config.workdir) == (None, "/scratch/at")


def test_checkpoints_with_links_are_copied_as_they_are_sent_to_hosts(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    (kept / "deep").mkdir(parents=True)
    (kept / "deep" / "step-1.pkl").write_text("1")
    (kept / "last.ckpt").symlink_to("deep/step-1.pkl")
    (kept / "gone.ckpt").symlink_to("removed.ckpt")
    cluster = LocalCluster(str(tmp_path / "shared"), BackendContext(Home(tmp_path / "home")))
    there = Path(cluster.send_checkpoints(kept, "e1-1-1"))
    assert (there / "deep" / "step-1.pkl").read_text() == "1"
    assert (there / "last.ckpt").read_text() == "1"
    assert cluster.send_checkpoints(kept, "e1-1-1") == str(there)
    cluster.remove_experiments(["e1"])
    assert list((tmp_path / "shared" / "jobs").glob("*/*")) == []

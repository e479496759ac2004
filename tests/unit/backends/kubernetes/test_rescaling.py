"""A trial whose pods are made anew goes on in its directory, from what rank 0 has saved."""

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.pods import rendezvous


def node(tmp_path, number, **files):
    directory = tmp_path / f"node-{number}"
    for folder in wire.FOLDERS:
        (directory / folder).mkdir(parents=True)
    for name, text in files.items():
        (directory / name.replace("__", "/").replace("_", ".")).write_text(text)
    return directory


def test_a_first_pod_finds_nothing_to_go_on_from(tmp_path):
    assert rendezvous.begin(str(node(tmp_path, 0)), 0, 1, 1) is False


def test_a_node_goes_on_with_its_streams_and_checkpoints(tmp_path):
    first = node(tmp_path, 0, status_json="{}", metrics="kept", lock="", checkpoints__saved="1")
    (first / wire.STOP_FILE).write_text("stop")
    assert rendezvous.begin(str(first), 0, 1, 1) is True
    names = sorted(path.name for path in first.iterdir() if path.is_file())
    assert names == ["metrics", "nodes", "status.json-1"]
    assert not (first / wire.STOP_FILE).exists()
    assert (first / wire.CHECKPOINTS / "saved").exists()
    (first / "status.json").write_text("{}")
    assert rendezvous.begin(str(first), 0, 1, 1) is True
    assert (first / "status.json-2").exists()


def test_with_another_number_of_nodes_other_ranks_go_on_from_what_rank_0_saved(tmp_path):
    first = node(tmp_path, 0)
    rendezvous.begin(str(first), 0, 2, 2)
    for name in ("step-1.pkl", "rank-1/step-1.pkl", "rank-2/step-1.pkl", "rank-3/step-1.pkl", "rank-x/own"):
        path = first / wire.CHECKPOINTS / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    rendezvous.begin(str(first), 0, 2, 2)
    assert (first / wire.CHECKPOINTS / "rank-3").exists()
    rendezvous.begin(str(first), 0, 1, 2)
    left = sorted(path.name for path in (first / wire.CHECKPOINTS).iterdir())
    assert left == ["rank-1", "rank-x", "step-1.pkl"]


@pytest.mark.parametrize(
    ("state", "told", "expected"),
    [
        ("PREEMPTED", True, True),
        ("EARLY_STOPPED", True, True),
        ("FAILED", True, True),
        ("SUCCEEDED", True, False),
        ("CANCELLED", True, False),
        ("EARLY_STOPPED", False, False),
        ("FAILED", False, False),
    ],
)
def test_a_pod_ends_for_others_only_when_it_was_told_to_and_is_not_done(state, told, expected):
    assert rendezvous.ends_for_others({"state": state}, is_told_to_end=told) is expected


def test_the_cell_is_asked_before_its_processes_are_told(tmp_path):
    first = node(tmp_path, 0)
    rendezvous.ask_to_stop(str(first))
    assert "goes on from there" in (first / wire.STOP_FILE).read_text()
    assert rendezvous.patience_s(30.0) == 25.0
    assert rendezvous.patience_s(2.0) == 1.0


def test_adaptdls_own_library_is_told_its_folders(tmp_path):
    assert rendezvous.variables({}, "/trial", str(tmp_path)) == {}
    told = rendezvous.variables({"ADAPTDL_JOB_ID": "a/b"}, "/trial", str(tmp_path))
    node(tmp_path, 0)
    assert told == {"ADAPTDL_CHECKPOINT_PATH": "/trial/checkpoints", "ADAPTDL_SHARE_PATH": f"{tmp_path}/share"}
    assert (tmp_path / "share").is_dir()
    for count in (1, 3, 2):
        rendezvous.begin(f"{tmp_path}/node-0", 0, count, 1)
    told = rendezvous.variables({"ADAPTDL_JOB_ID": "a/b"}, f"{tmp_path}/node-0", str(tmp_path))
    assert told["AUTOTRAIN_PROFILED_REPLICAS"] == "3"


def test_the_number_of_nodes_is_that_of_now():
    assert rendezvous.node_count({"ADAPTDL_NUM_REPLICAS": "3"}, "ADAPTDL_NUM_REPLICAS", 2) == 3
    assert rendezvous.node_count({}, "ADAPTDL_NUM_REPLICAS", 2) == 2
    assert rendezvous.node_count({}, "", 2) == 2

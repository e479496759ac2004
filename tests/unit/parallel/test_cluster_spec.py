"""Clusters: their forms, their levels, and what is wrong with bad ones."""

import pytest

from jupyter_autotrain.core.cluster import ClusterSpec, Level, MeshSpec
from jupyter_autotrain.core.devices import Link, LinkKind, presets
from jupyter_autotrain.core.json import from_json, to_json
from jupyter_autotrain.errors import PlanError


def test_a_plain_count_is_one_chassis():
    cluster = ClusterSpec.parse("8xH100")
    assert cluster.devices == 8
    assert [level.size for level in cluster.levels] == [8]
    assert cluster.device.matrix_flops_per_s == 989e12


def test_nodes_and_cards_are_two_levels_with_the_fast_one_inside():
    inner, outer = ClusterSpec.parse("2x8xA100-80GB").levels
    assert (inner.size, outer.size) == (8, 2)
    assert inner.link.bytes_per_s > outer.link.bytes_per_s


def test_a_pod_form_names_the_wiring_of_its_outermost_level():
    pod = ClusterSpec.parse("pod(32x8xNNP-T1000, ring)")
    assert pod.devices == 256
    assert pod.levels[-1].link.kind is LinkKind.RING


def test_a_count_above_a_chassis_becomes_several_chassis():
    assert [level.size for level in ClusterSpec.parse("64xH100").levels] == [8, 8]
    assert [level.size for level in ClusterSpec.parse("12xA100").levels] == [6, 2]


def test_an_uneven_cluster_suits_its_weakest_device_and_knows_each_stage():
    cluster = ClusterSpec.parse("8xH100+8xA100-40GB")
    assert cluster.devices == 16
    assert cluster.device.memory_bytes == 40 * 2**30
    assert cluster.slowest(0, 8).name == "H100"
    assert cluster.slowest(8, 16).name == "A100-40GB"


def test_a_mapping_gives_every_figure():
    levels = [{"name": "card", "size": 4, "kind": "full", "bytes_per_s": 1e9, "latency_s": 1e-6, "shared_by": 2}]
    cluster = ClusterSpec.parse({"device": "A100", "levels": levels})
    assert cluster.devices == 4
    assert cluster.levels[0].link.shared_by == 2


def test_an_unknown_device_is_answered_with_the_nearest_name():
    with pytest.raises(PlanError, match="H100"):
        ClusterSpec.parse("8xH10O")


@pytest.mark.parametrize("text", ["", "8x", "eight H100", "pod(8xH100, star)", "0xH100"])
def test_a_wrong_form_is_an_error_with_three_clauses(text):
    with pytest.raises(PlanError) as caught:
        ClusterSpec.parse(text)
    assert caught.value.found
    assert caught.value.expected
    assert caught.value.action


def test_zero_bandwidth_is_an_error():
    with pytest.raises(PlanError, match="bandwidth"):
        ClusterSpec.parse("8xH100").scaled(bandwidth=0.0)


def test_an_incomplete_mapping_is_an_error():
    with pytest.raises(PlanError, match="cannot be read"):
        ClusterSpec.parse({"device": "A100"})


def test_an_axis_knows_the_levels_it_runs_on():
    cluster = ClusterSpec.parse("8x8xA100")
    mesh = MeshSpec(("dp", "tp"), (16, 4))
    assert [s.size for s in cluster.segments(mesh.stride(1), 4)] == [4]
    assert [s.size for s in cluster.segments(mesh.stride(0), 16)] == [2, 8]


def test_an_axis_off_the_level_borders_is_priced_on_the_outer_level():
    link = Link(LinkKind.SWITCH, 1e9, 1e-6)
    device = presets()["A100"].device
    cluster = ClusterSpec(((device, 12),), (Level("card", 4, link), Level("pod", 3, link)))
    (segment,) = cluster.segments(1, 6)
    assert segment.size == 6
    assert segment.whole == 3


def test_what_if_changes_devices_bandwidth_and_memory():
    cluster = ClusterSpec.parse("2x8xH100").scaled(bandwidth=2.0, memory_bytes=10, devices=12)
    assert cluster.devices == 12
    assert cluster.device.memory_bytes == 10
    assert cluster.levels[0].link.bytes_per_s == 900e9


def test_every_preset_states_its_source_and_survives_json():
    for name in presets():
        cluster = ClusterSpec.parse(f"4x{name}")
        assert cluster.device.source
        assert from_json(ClusterSpec, to_json(cluster)) == cluster

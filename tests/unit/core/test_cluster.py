"""Clusters: their forms, their levels, and what is wrong with bad ones."""

from dataclasses import replace

import pytest

from jupyter_autotrain.agent.json import from_json, to_json
from jupyter_autotrain.core.cluster import ClusterSpec, MeshSpec
from jupyter_autotrain.core.cluster_figures import Level
from jupyter_autotrain.core.devices import Link, LinkKind, presets
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


def has_three_clauses(fault):
    assert fault.found
    assert fault.expected
    assert fault.action
    assert len(str(fault).splitlines()) <= 6


@pytest.mark.parametrize(("given", "line"), [(8, "8xH100"), ("16", "16xH100"), (True, "8xH100"), (-3, "8xH100")])
def test_a_number_alone_is_answered_with_the_line_to_write(given, line):
    with pytest.raises(PlanError, match="names no device") as caught:
        ClusterSpec.parse(given)
    has_three_clauses(caught.value)
    assert f'cluster="{line}"' in caught.value.action


@pytest.mark.parametrize("given", [None, 8.5, float("nan"), [], ["8xH100"], b"8xH100", object, 8 + 0j])
def test_what_is_no_cluster_is_an_error_with_three_clauses(given):
    with pytest.raises(PlanError) as caught:
        ClusterSpec.parse(given)
    has_three_clauses(caught.value)


LEVEL = {"name": "card", "size": 4, "kind": "full", "bytes_per_s": 1e9, "latency_s": 1e-6}
BAD = [None, 0, -1, 8.5, True, "x", "", float("nan"), float("inf"), [], {}]


WHOLE = ["size", "shared_by", "dims"]
RATES = ["matrix_flops_per_s", "matrix32_flops_per_s", "memory_bytes", "memory_bytes_per_s", "host_bytes_per_s"]


def bad_values(*keys, without=()):
    return [(key, value) for key in keys for value in BAD if value is True or value not in without]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *bad_values(*WHOLE, "kind", "efficiency"),
        *bad_values("bytes_per_s", without=[8.5]),
        *bad_values("latency_s", without=[0, 8.5]),
    ],
)
def test_a_figure_that_no_link_has_is_an_error_that_names_it(key, value):
    with pytest.raises(PlanError, match=key) as caught:
        ClusterSpec.parse({"device": "A100", "levels": [{**LEVEL, key: value}]})
    has_three_clauses(caught.value)


@pytest.mark.parametrize(("key", "value"), bad_values(*RATES, without=[8.5]))
def test_a_figure_that_no_device_has_is_an_error_that_names_it(key, value):
    figures = to_json(presets()["A100"].device)
    with pytest.raises(PlanError, match=key) as caught:
        ClusterSpec.parse({"device": {**figures, key: value}, "levels": [LEVEL]})
    has_three_clauses(caught.value)


@pytest.mark.parametrize(
    "mapping",
    [
        {},
        {"device": None, "levels": [LEVEL]},
        {"device": 8, "levels": [LEVEL]},
        {"device": {"name": "mine"}, "levels": [LEVEL]},
        {"device": "A100", "levels": []},
        {"device": "A100", "levels": None},
        {"device": "A100", "levels": LEVEL},
        {"device": "A100", "levels": [8]},
        {"device": "A100", "levels": [{"size": 8}]},
        {"device": "A100", "levels": [{**LEVEL, "size": -2}, {**LEVEL, "size": -4}]},
    ],
)
def test_a_mapping_that_holds_no_cluster_is_an_error_with_three_clauses(mapping):
    with pytest.raises(PlanError) as caught:
        ClusterSpec.parse(mapping)
    has_three_clauses(caught.value)


def test_a_misspelt_figure_is_answered_with_the_nearest_name():
    with pytest.raises(PlanError, match="'efficiency'"):
        ClusterSpec.parse({"device": "A100", "levels": [{**LEVEL, "efficency": 0.5}]})


@pytest.mark.parametrize("devices", [0, -4, 2.5, True])
def test_what_if_refuses_a_number_of_devices_that_no_machine_has(devices):
    with pytest.raises(PlanError, match="devices"):
        ClusterSpec.parse("8xH100").scaled(devices=devices)


def test_an_axis_knows_the_levels_it_runs_on():
    cluster = ClusterSpec.parse("8x8xA100")
    mesh = MeshSpec(("dp", "tp"), (16, 4))
    assert [s.size for s in cluster.link_groups(mesh.stride(1), 4)] == [4]
    assert [s.size for s in cluster.link_groups(mesh.stride(0), 16)] == [2, 8]


def test_an_axis_off_the_level_borders_is_priced_on_the_outer_level():
    link = Link(LinkKind.SWITCH, 1e9, 1e-6)
    device = presets()["A100"].device
    cluster = ClusterSpec(((device, 12),), (Level("card", 4, link), Level("pod", 3, link)))
    (group,) = cluster.link_groups(1, 6)
    assert group.size == 6
    assert group.whole == 3


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


@pytest.mark.parametrize("name", sorted({preset.device.name for preset in presets().values()}))
def test_every_device_keeps_some_memory_from_training_and_most_for_it(name):
    device = ClusterSpec.parse(f"2x{name}").device
    assert 0.01 * device.memory_bytes < device.reserved_bytes < 0.2 * device.memory_bytes
    assert device.usable_bytes == device.memory_bytes - device.reserved_bytes == device.limit_bytes()


def test_an_h100_offers_about_74_of_its_80_gib():
    device = ClusterSpec.parse("8xH100").device
    assert device.memory_bytes == 80 * 2**30
    assert 73 * 2**30 < device.usable_bytes < 75 * 2**30


def test_memory_that_was_asked_for_wins_where_the_device_has_it():
    device = ClusterSpec.parse("8xH100").device
    assert device.limit_bytes(80 * 2**30) == 80 * 2**30
    assert device.limit_bytes(10e9) == 10e9
    assert device.limit_bytes(200e9) == device.usable_bytes
    assert ClusterSpec.parse("8xH100").scaled(memory_bytes=10**10).device.usable_bytes == 10**10


def test_what_is_reserved_can_be_set():
    levels = [{"name": "card", "size": 2, "bytes_per_s": 1e9, "latency_s": 0}]
    for given in ({"cluster": "8xH100"}, {"device": "H100", "levels": levels}):
        for kept, expected in (("6GB", 6e9), (0, 0), (2**30, 2**30)):
            device = ClusterSpec.parse({**given, "reserved": kept}).device
            assert device.usable_bytes == 80 * 2**30 - expected
    mixed = replace(ClusterSpec.parse("8xH100+8xA100-40GB"), reserved_bytes=0)
    assert mixed.device.usable_bytes == 40 * 2**30
    assert mixed.scaled(devices=4).device.usable_bytes == 80 * 2**30


@pytest.mark.parametrize("kept", [-1, "80GiB", 1e30, float("nan"), "much", True])
def test_what_is_reserved_leaves_some_memory(kept):
    with pytest.raises(PlanError, match=r"reserved|size"):
        ClusterSpec.parse({"cluster": "8xH100", "reserved": kept})


def test_a_mixed_cluster_offers_what_its_least_device_offers():
    small = ClusterSpec.parse("8xA100-40GB").device.usable_bytes
    assert ClusterSpec.parse("8xH100+8xA100-40GB").device.usable_bytes == small


def test_tiers_of_one_axis_are_read_together_and_named_apart():
    mesh = MeshSpec(("data", "data", "tensor", "data"), (2, 4, 2, 3))
    assert str(mesh) == "data 8 \N{MULTIPLICATION SIGN} tensor 2 \N{MULTIPLICATION SIGN} data 3"
    assert mesh.unique_axes() == ("data_0", "data_1", "tensor", "data_2")
    assert MeshSpec(("data",), (8,)).unique_axes() == ("data",)

"""Links between GPUs, from what the driver prints."""

from __future__ import annotations

import pytest

from jupyter_autotrain.backends.agent_answers import link_of
from jupyter_autotrain.core.devices import LinkKind


def matrix(count: int, joined: str) -> str:
    names = [f"GPU{number}" for number in range(count)]
    rows = ["\t".join(["", *names, "CPU Affinity", "NUMA Affinity"])]
    for name in names:
        cells = [" X " if name == other else joined for other in names]
        rows.append("\t".join([name, *cells, "0-31", "0"]))
    return "\n".join([*rows, "", "Legend:", "  NV#  = Connection traversing a bonded set of # NVLinks"])


def test_a_chassis_with_a_switch_has_all_links_of_a_gpu_to_each_other_one() -> None:
    link = link_of(matrix(8, "NV12"))
    assert link is not None
    assert (link.kind, link.bytes_per_s) == (LinkKind.SWITCH, 300e9)


def test_bridged_gpus_have_a_bundle_for_each_pair() -> None:
    link = link_of(matrix(4, "NV4"))
    assert link is not None
    assert (link.kind, link.bytes_per_s) == (LinkKind.FULL, 300e9)


@pytest.mark.parametrize("joined", ["PIX", "PHB", "SYS", "NODE"])
def test_gpus_without_nvlink_are_joined_by_pcie(joined: str) -> None:
    link = link_of(matrix(2, joined), (4, 16))
    assert link is not None
    assert link.bytes_per_s == pytest.approx(31.5e9, rel=0.01)
    assert link_of(matrix(2, joined)) is None


def test_one_pair_without_nvlink_makes_pcie_the_link() -> None:
    text = matrix(4, "NV4").replace("NV4", "SYS", 1)
    link = link_of(text, (3, 16))
    assert link is not None
    assert link.bytes_per_s == pytest.approx(15.8e9, rel=0.01)


@pytest.mark.parametrize("text", ["", matrix(1, ""), "command not found"])
def test_where_nothing_is_known_there_is_no_link(text: str) -> None:
    assert link_of(text, (4, 16)) is None


def test_an_underlined_head_is_read_as_newer_drivers_print_it() -> None:
    text = matrix(2, "NV18").replace("\tGPU0", "\t\x1b[4mGPU0", 1).replace("NUMA Affinity", "NUMA Affinity\x1b[0m", 1)
    link = link_of(text)
    assert link is not None
    assert link.bytes_per_s == 450e9

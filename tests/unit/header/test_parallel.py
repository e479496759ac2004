"""The section `parallel:`: degrees, workers, and what does not go together."""

import pytest

from jupyter_autotrain import header
from jupyter_autotrain.errors import HeaderError


def parsed(text):
    return header.parse_cell("", f"{text}\n---\npass", header.HeaderContext()).header


def test_degrees_have_short_and_long_names():
    assert (
        parsed("parallel: {mesh: {dp: 2, tp: 4}}").parallel == parsed("parallel: {mesh: {data: 2, tensor: 4}}").parallel
    )
    assert parsed("parallel: {mesh: {pp: 2, ep: 2}}").parallel.mesh.devices == 4


def test_workers_are_spread_over_nodes():
    assert parsed("parallel: {workers: 4}").workers_per_node == 4
    assert parsed("parallel: {workers: 4}\nresources: {nodes: 2}").workers_per_node == 2
    assert parsed("resources: {workers_per_node: 3}").workers_per_node == 3


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("parallel: {workers: 3}\nresources: {nodes: 2}", "3 workers on 2 nodes"),
        ("parallel: {workers: 4}\nresources: {workers_per_node: 2}", "workers_per_node 2 beside 4 workers"),
        ("parallel: {workers: 4, mesh: {dp: 2}}", "a mesh of 2 devices for 4 workers"),
        ("parallel: {mesh: {xp: 2}}", "xp"),
        ("parallel: {mesh: 4}", "mesh"),
        ("parallel: {simplicity: 2}", "simplicity"),
        ("parallel: {workers: 0}", "workers"),
    ],
)
def test_what_does_not_go_together_is_told(text, told):
    with pytest.raises(HeaderError, match=told):
        parsed(text)

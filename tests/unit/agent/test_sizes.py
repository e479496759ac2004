"""Memory of devices reads as devices are sold."""

import pytest

from jupyter_autotrain.agent.sizes import format_bytes, format_memory, parse_bytes
from jupyter_autotrain.core.devices import presets


def test_a_card_of_80_reads_as_80():
    assert format_memory(presets()["H100"].device.memory_bytes) == "80 GiB"


@pytest.mark.parametrize(
    ("held_bytes", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1536, "1.5 KiB"),
        (2**20 * 1023, "1023 MiB"),
        (2**30 * 3.217, "3.22 GiB"),
        (2**30 * 74.25, "74.2 GiB"),
        (2**40 * 3, "3 TiB"),
    ],
)
def test_bytes_that_are_held_are_told_in_binary_units(held_bytes, text):
    assert format_memory(held_bytes) == text


@pytest.mark.parametrize("held_bytes", [1, 1025, 2**20 + 1, 10**9 + 1, 8 * 10**10])
def test_rounded_up_it_is_enough_when_it_is_read_back(held_bytes):
    assert parse_bytes(format_memory(held_bytes, up=True)) >= held_bytes


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (200_000_000, "200 MB"), (1_500_000_000, "1.5 GB"), (25e12, "25 TB")],
)
def test_sizes_are_written_as_people_do(count, text):
    assert format_bytes(int(count)) == text

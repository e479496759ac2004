"""Memory of devices reads as devices are sold."""

import pytest

from jupyter_autotrain.core.devices import presets
from jupyter_autotrain.core.sizes import parse_bytes
from jupyter_autotrain.core.wording import memory_text


def test_a_card_of_80_reads_as_80():
    assert memory_text(presets()["H100"].device.memory_bytes) == "80 GiB"


@pytest.mark.parametrize(
    ("held_bytes", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1536, "1.5 KiB"),
        (2**30 * 74.25, "74.2 GiB"),
        (2**40 * 3, "3 TiB"),
    ],
)
def test_bytes_that_are_held_are_told_in_binary_units(held_bytes, text):
    assert memory_text(held_bytes) == text


@pytest.mark.parametrize("held_bytes", [1, 1025, 2**20 + 1, 10**9 + 1, 8 * 10**10])
def test_rounded_up_it_is_enough_when_it_is_read_back(held_bytes):
    assert parse_bytes(memory_text(held_bytes, up=True)) >= held_bytes

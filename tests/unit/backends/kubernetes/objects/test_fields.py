"""Quantities as Kubernetes' API writes them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_autotrain.backends.kubernetes.objects.fields import parse_quantity

BINARY = {suffix: 1024**power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}
DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}

whole = st.integers(0, 10**9).map(str)
numbers = st.tuples(st.sampled_from(["", "+", "-"]), whole, st.sampled_from(["", ".", ".5", ".125"])).map("".join)
numbers |= st.tuples(st.sampled_from(["", "+", "-"]), st.sampled_from([".5", ".25"])).map("".join)


@given(numbers, st.sampled_from(sorted(BINARY)))
def test_binary_suffixes_are_powers_of_1024(number: str, suffix: str) -> None:
    assert parse_quantity(number + suffix) == Decimal(number) * BINARY[suffix]


@given(numbers, st.sampled_from(sorted(DECIMAL)))
def test_decimal_suffixes_are_powers_of_1000(number: str, suffix: str) -> None:
    assert parse_quantity(number + suffix) == Decimal(number).scaleb(DECIMAL[suffix])


@given(numbers, st.sampled_from("eE"), st.integers(-9, 9), st.booleans())
def test_a_decimal_exponent_is_one_of_ten(number: str, letter: str, exponent: int, signed: bool) -> None:
    text = f"{exponent:+d}" if signed else str(exponent)
    assert parse_quantity(f"{number}{letter}{text}") == Decimal(number).scaleb(exponent)


def test_the_memory_of_a_real_node_is_read() -> None:
    assert parse_quantity("24581692Ki") == 24581692 * 1024


@pytest.mark.parametrize(
    "text", ["", "Gi", "1.2.3", "1gi", "1KiB", "1 Gi", "0x10", "1e", "1Ki3", "NaN", "Infinity", "1_000"]
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(text)

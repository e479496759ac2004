"""The codec of frozen dataclasses: what is read back is what was written."""

import enum
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from jupyter_autotrain.agent.json import JsonObject, JsonValue, from_json, to_json


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Circle:
    KIND: ClassVar[str] = "circle"
    radius: float


@dataclass(frozen=True, slots=True)
class Group:
    KIND: ClassVar[str] = "group"
    shapes: tuple["Circle | Group", ...] = ()


@dataclass(frozen=True, slots=True)
class Drawing:
    name: str
    size: tuple[int, float] = (1, 1.0)
    colour: Colour | None = None
    top: Circle | Group | None = None
    layers: Mapping[str, tuple[Circle, ...]] = field(default_factory=dict)
    counts: Mapping[Colour, int] = field(default_factory=dict)
    extra: JsonObject = field(default_factory=dict)
    anything: JsonValue = None
    made: int = field(default=0, init=False)


FULL = Drawing(
    "x", (2, 0.5), Colour.BLUE, Group((Circle(1.0), Group((Circle(math.inf),)))), {"a": (Circle(2.0),)},
    extra={"deep": {"list": [1, {"b": None}]}}, anything=[1, "two", {"three": 3.0}],
)  # fmt: skip


@pytest.mark.parametrize("drawing", [FULL, Drawing("least")])
def test_a_value_comes_back_as_it_was(drawing):
    assert from_json(Drawing, json.loads(json.dumps(to_json(drawing)))) == drawing


def test_not_a_number_comes_back_as_not_a_number():
    assert math.isnan(from_json(Circle, json.loads(json.dumps(to_json(Circle(math.nan))))).radius)


def test_a_number_of_a_float_field_is_a_float():
    assert type(from_json(Circle, {"radius": 3}).radius) is float


def test_enums_and_subclasses_of_plain_types_are_written_as_plain_values():
    class Name(str):
        __slots__ = ()

    assert to_json({Colour.RED: Colour.BLUE, 1: {Name("n")}}) == {"red": "blue", "1": ["n"]}


def test_unknown_keys_are_ignored_and_missing_ones_are_errors():
    assert from_json(Circle, {"radius": 1.0, "newer": True}) == Circle(1.0)
    with pytest.raises(TypeError, match="radius"):
        from_json(Circle, {})


@pytest.mark.parametrize("value", [{"name": "x", "colour": "green"}, {"name": "x", "size": [1]}])
def test_a_member_that_is_unknown_or_a_tuple_cut_short_is_an_error(value):
    with pytest.raises(ValueError, match=r"green|2 were expected"):
        from_json(Drawing, value)


def test_what_does_not_fit_a_field_is_never_changed_to_fit():
    assert from_json(Drawing, {"name": None, "made": 5}).name is None
    assert from_json(Drawing, {"name": "x", "top": {"kind": "square"}}).top == {"kind": "square"}


@pytest.mark.parametrize("value", [object(), Circle, b"bytes"])
def test_a_value_without_a_json_form_is_an_error(value):
    with pytest.raises(TypeError, match="has no JSON form"):
        to_json({"a": [value]})


@dataclass(frozen=True)
class Square:
    side: int
    area: int = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "area", self.side**2)


def test_a_field_that_is_computed_is_not_written():
    assert to_json(Square(3)) == {"side": 3}
    assert from_json(Square, to_json(Square(3))) == Square(3)

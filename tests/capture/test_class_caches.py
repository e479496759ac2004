"""Tests that what Python itself keeps at a class is no state of the notebook."""


def test_what_pickle_notes_at_a_class_does_not_travel(notebook):
    here = notebook("class Value:\n    pass\nvalue = Value()\nvalue.x = 3\nreduced = value.__reduce_ex__(2)")
    assert "__slotnames__" in vars(here.namespace["Value"])
    captured = here.capture("print(value.x, Value.__name__)").captured
    assert {entry.name for entry in captured} == {"Value", "value"}
    assert here.both("print(value.x)") == "3\n"

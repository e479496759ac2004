"""Tables of a plan as text and as HTML."""

import re

from jupyter_autotrain.parallel.plan.formatting import WIDTH, PrintedTable, aligned

HEADS = ("what", "this plan", "the other")
PATH = "model.layers.*.self_attn.rotary_embedding.frequencies"
ROWS = [
    (PATH, "the communication of gradients is reduce-scatter over the axis data, twice", "none of it"),
    ("memory", "58.8 GiB", "the activations of whole transformer layers are recomputed in the backward pass, all"),
]


def test_a_table_fits_the_page_and_its_words_stay_whole():
    text = aligned(HEADS, ROWS)
    assert max(map(len, text.splitlines())) <= WIDTH
    found = set(text.split())
    words = {word for row in ROWS for cell in row for word in cell.split()} - {PATH}
    assert words <= found
    assert {f"{part}" for part in PATH.split(".")} <= set(re.split(r"[\s.]+", text))


def test_words_that_have_no_room_are_cut():
    text = aligned(["x"] * 2, [["a" * 60] * 2])
    assert max(map(len, text.splitlines())) <= WIDTH
    assert text.count("a") == 120


def test_numbers_of_a_table_stand_to_the_right_and_everything_is_escaped():
    page = PrintedTable(("op", "step"), [("<b>", "3 ms"), ("c", "-")])._repr_html_()
    assert '<th style="text-align:left">op</th><th style="text-align:right;white-space:nowrap">step</th>' in page
    assert "&lt;b&gt;" in page
    assert page.startswith('<div style="overflow-x:auto">')


def test_a_line_does_not_end_between_a_number_and_its_unit():
    text = aligned(("stage", "sent"), [("x" * 70, "data 30.9 GiB, tensor 1.5 ms")])
    assert "30.9 GiB" in text
    assert "1.5 ms" in text

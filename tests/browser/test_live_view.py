"""The live view as a person meets it: what it shows, by mouse, by keyboard, by ear, in the light and in the dark."""

import math
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.lab_page import DARK, in_theme

pytestmark = pytest.mark.browser

PLACE = Path(__file__).parent / "place.py"
SHOW = "from place import Place\n\nplace = Place()\nplace.fill(ended=9)\nhandle = place.experiment.show()"


@pytest.fixture
def shown(lab):
    (lab.server.notebooks / "place.py").write_text(PLACE.read_text())
    lab.open(SHOW)
    lab.run_all()
    expect(lab.view.locator("canvas").first).to_be_visible()
    return lab


def pixels(lab, expression, area="canvas.width"):
    """Of the drawn pixels of the first chart, left of `area`: the sum of an expression over them."""
    return lab.view.locator("canvas").first.evaluate(
        f"""(canvas) => {{
            const data = canvas.getContext('2d').getImageData(0, 0, {area}, canvas.height).data;
            let sum = 0;
            for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 60) sum += {expression};
            return sum;
        }}"""
    )


def ink(lab):
    """Return how many pixels of the first chart are drawn."""
    return pixels(lab, "1")


def brightness(lab):
    """Return the mean brightness of the labels left of the first chart, 0 to 255."""
    drawn = pixels(lab, "1", "40")
    return pixels(lab, "data[i]", "40") / drawn if drawn else math.nan


def until(lab, condition):
    """Look again with each frame that the page paints, until the condition holds; the test's time limit ends it."""
    while not condition():
        lab.page.evaluate("() => new Promise(requestAnimationFrame)")


def test_state_progress_best_trial_and_curves_are_seen(shown):
    view = shown.view
    expect(view.get_by_text("Running").first).to_be_visible()
    expect(view.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "9")
    expect(view.locator(".at-facts")).to_contain_text(re.compile(r"9 of 12 trials.*2 running.*1 failed"))
    expect(view.locator(".at-best")).to_contain_text(re.compile(r"Best val_acc \(last\) 0\.9\d+  trial \d+"))
    expect(view.get_by_role("tab")).to_have_text(["val_acc", "loss", "train/grad_norm", "All"])
    expect(shown.status).to_contain_text(re.compile(r"Running, 9 of 12 trials ended. Trial \d+: val_acc .* → 0\.9"))
    until(shown, lambda: ink(shown) > 2_000)
    shown.page.mouse.move(5, 5)
    shown.screenshot("light")
    assert shown.errors == []


def test_new_points_move_the_curves(shown):
    until(shown, lambda: ink(shown) > 2_000)
    before = ink(shown)
    best = shown.view.locator(".at-best").inner_text()
    shown.execute("place.report(10, [('val_acc', step, step / 80) for step in range(25, 79)])")
    expect(shown.view.locator(".at-best")).not_to_have_text(best)
    expect(shown.status).to_contain_text("→ 0.975, still rising")
    until(shown, lambda: abs(ink(shown) - before) > 100)


def test_the_end_changes_the_state_and_refreshes_the_stored_card(shown):
    shown.view.get_by_role("tab", name="loss").click()
    shown.execute("[place.end(n) for n in (10, 11)]; place.begin(12); place.end(12); place.close()")
    expect(shown.view.get_by_text("Succeeded").first).to_be_visible()
    expect(shown.status).to_contain_text("Succeeded, 12 of 12 trials ended")
    # Drawn anew by the refresh of the output, the view keeps what was chosen.
    expect(shown.view.get_by_role("tab", name="loss")).to_have_attribute("aria-selected", "true")
    expect(shown.view.get_by_role("button", name="Stop")).to_be_hidden()
    text = shown.saved("SUCCEEDED  12 of 12")
    assert "data:image/svg+xml;base64" in text
    assert "widget-state" not in text
    assert str(shown.server.notebooks) not in text


def test_hovering_tells_values_and_dragging_zooms(shown):
    over = shown.view.locator(".u-over").first
    middle = {"x": over.bounding_box()["width"] / 2, "y": 40}
    tip = shown.view.locator(".at-tip").first

    def is_told():
        over.hover(position=middle)  # once it lies still; a chart that is made anew meanwhile knows of no pointer
        return tip.is_visible()

    until(shown, is_told)
    expect(tip).to_contain_text(re.compile(r"step \d+.*trial \d+ ★.*lr=", re.DOTALL))
    shown.screenshot("hover")
    over.hover(position=middle)
    box = over.bounding_box()
    shown.page.mouse.down()
    shown.page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 60, steps=4)
    shown.page.mouse.up()
    reset = shown.view.get_by_role("button", name="Reset zoom")
    expect(reset).to_be_visible()
    shown.screenshot("zoom")
    reset.click()
    expect(reset).to_be_hidden()


def all_metrics_stand_side_by_side_and_turn_logarithmic(shown):
    shown.view.get_by_role("tab", name="All").click()
    expect(shown.view.locator("canvas")).to_have_count(3)
    shown.view.get_by_role("button", name="Log scale", exact=True).click()
    expect(shown.view.get_by_role("button", name="Log scale", exact=True)).to_have_attribute("aria-pressed", "true")
    shown.screenshot("all-log")


def test_every_chart_has_a_data_table_and_all_stand_side_by_side_in_a_narrow_cell_too(shown):
    shown.view.get_by_role("button", name="Table").click()
    data_table = shown.view.get_by_role("region", name="Values of val_acc")
    expect(data_table.get_by_role("row")).to_have_count(61)
    expect(data_table.locator("caption")).to_contain_text("val_acc: 8 of 11 trials, 60 steps")
    shown.screenshot("table")
    shown.view.get_by_role("button", name="Table").click()
    expect(shown.view.locator("canvas").first).to_be_visible()
    all_metrics_stand_side_by_side_and_turn_logarithmic(shown)
    a_narrow_cell_is_still_readable(shown)
    assert shown.errors == []


def test_the_whole_view_is_reached_by_keyboard(shown):
    keyboard = shown.page.keyboard
    shown.view.get_by_role("tab", name="val_acc").focus()
    keyboard.press("ArrowRight")
    expect(shown.view.get_by_role("tab", name="loss")).to_be_focused()
    expect(shown.view.get_by_role("tab", name="loss")).to_have_attribute("aria-selected", "true")
    chart = shown.view.get_by_role("img").first
    chart.focus()
    keyboard.press("ArrowRight")
    expect(shown.view.locator(".at-tip").first).to_contain_text("step")
    keyboard.press("+")
    expect(shown.view.get_by_role("button", name="Reset zoom")).to_be_visible()
    keyboard.press("Escape")
    expect(shown.view.get_by_role("button", name="Reset zoom")).to_be_hidden()
    rows = shown.view.locator(".at-trials tbody tr")
    rows.nth(10).focus()
    keyboard.press("Home")
    expect(rows.nth(0)).to_be_focused()
    expect(rows.nth(0)).to_have_attribute("aria-selected", "true")
    keyboard.press("ArrowDown")
    expect(rows.nth(1)).to_have_attribute("aria-selected", "true")
    shown.view.get_by_role("button", name="val_acc").focus()
    keyboard.press("Enter")
    keyboard.press("Enter")
    expect(shown.view.get_by_role("columnheader", name="val_acc")).to_have_attribute("aria-sort", "descending")
    expect(rows.nth(0)).to_have_attribute("data-best", "")


def test_the_log_of_the_chosen_trial_is_followed(shown):
    shown.view.locator(".at-trials tbody tr[data-trial='2']").click()
    shown.view.get_by_text("Log of trial 2").click()
    expect(shown.view.get_by_role("log")).to_contain_text("epoch 59: loss 0.0383")
    shown.execute("place.log(2, 'a new line')")
    expect(shown.view.get_by_role("log")).to_have_text("a new line")
    shown.view.get_by_role("button", name="stderr").click()
    expect(shown.view.get_by_role("log")).to_have_text("Nothing on stderr so far.")
    shown.view.get_by_role("button", name="stdout").click()
    shown.execute("place.log(2, ''.join(f'epoch {i}: loss {2.3 / (i + 1):.4f}\\n' for i in range(60)))")
    expect(shown.view.get_by_role("log")).to_contain_text("epoch 59")
    shown.view.scroll_into_view_if_needed()
    shown.screenshot("log")


def test_text_on_canvases_follows_the_dark_theme(shown):
    until(shown, lambda: brightness(shown) < 128)
    with in_theme(shown.page, DARK):
        until(shown, lambda: brightness(shown) > 128)
        shown.screenshot("dark")


def a_narrow_cell_is_still_readable(shown):
    wide = shown.view.bounding_box()["width"]
    shown.page.set_viewport_size({"width": 860, "height": 1000})
    shown.command("application:toggle-left-area")
    until(shown, lambda: shown.view.bounding_box()["width"] < wide)
    until(shown, lambda: shown.view.evaluate("(el) => el.scrollWidth <= el.clientWidth + 1"))
    shown.screenshot("narrow")


@pytest.mark.long  # test_cell_in_lab.py loads the page of a view anew, server/test_changes.py follows in two pages
def test_a_second_tab_shows_the_same_picture_and_both_go_on(shown):
    facts = shown.view.locator(".at-best").inner_text()
    shown.saved("widget-view+json")
    second = shown.page.context.new_page()
    shown.visit(second)
    others = second.locator(".autotrain").last
    expect(others.locator(".at-best")).to_have_text(facts)
    expect(others.locator(".at-trials tbody tr")).to_have_count(11)
    shown.execute("place.report(10, [('val_acc', 30, 0.99)])")
    for view in (shown.view, others):
        expect(view.locator(".at-best")).to_contain_text("0.99")
    second.close()


def test_a_handle_as_the_value_of_a_cell_is_a_view_and_its_trials_are_a_table(lab):
    (lab.server.notebooks / "place.py").write_text(PLACE.read_text())
    lab.open(
        "from place import Place\n\nplace = Place()\nplace.fill(ended=9)\nplace.experiment", "place.experiment.trials"
    )
    lab.run_all()
    expect(lab.view.locator("canvas").first).to_be_visible()
    table = lab.page.locator(".jp-RenderedHTMLCommon table").last
    expect(table).to_contain_text("ran out of memory")
    lab.screenshot("values")
    assert lab.errors == []


def test_the_log_of_each_rank_can_be_chosen(lab):
    (lab.server.notebooks / "place.py").write_text(PLACE.read_text())
    lab.open(
        "from place import Place\n\nplace = Place(ranks=3)\nplace.fill(ended=1, running=0)\n"
        "for rank in (1, 2):\n    place.log(1, f'this is rank {rank}\\n', f'stdout-{rank}')\n"
        "handle = place.experiment.show()"
    )
    lab.run_all()
    lab.view.get_by_text("Log of trial 1").click()
    log = lab.view.locator(".at-log").first
    expect(log).to_contain_text("epoch 59")
    lab.view.get_by_label("Rank whose log is shown").select_option("rank 2")
    expect(log).to_have_text("this is rank 2")
    lab.view.get_by_label("Rank whose log is shown").select_option("rank 0")
    expect(log).to_contain_text("epoch 59")


def test_trials_on_several_hosts_show_where_they_run_and_a_host_that_does_not_answer_is_named(lab):
    (lab.server.notebooks / "place.py").write_text(PLACE.read_text())
    lab.open(
        "from place import Place\n"
        "from jupyter_autotrain.core.spec import NodePlacement, Placement\n"
        "from jupyter_autotrain.core.records import UnreachableNode\n"
        "place = Place()\n"
        "homes = [('local', 'box'), ('lab', 'gpu1'), ('lab', 'gpu2')]\n"
        "for number, (backend, node) in enumerate(homes, 1):\n"
        "    place.begin(number, Placement((NodePlacement(node),), backend), lr=0.1)\n"
        "    place.curve(number, range(25))\n"
        "place.store.set_unreachable_nodes(place.id, [UnreachableNode('gpu1', 0.0, 1)])\n"
        "handle = place.experiment.show()"
    )
    lab.run_all()
    expect(lab.view.locator("canvas").first).to_be_visible()
    rows = lab.view.locator("tr[data-trial]")
    expect(lab.view.get_by_role("columnheader", name="Runs on")).to_be_visible()
    for text in ("local", "lab: gpu1", "lab: gpu2"):
        expect(rows.filter(has_text=text)).to_have_count(1)
    expect(lab.view.locator(".at-warnings")).to_contain_text("gpu1 does not answer since")
    expect(lab.view.locator(".at-warnings")).to_contain_text("1 trial goes on there")
    lab.screenshot("several-hosts")
    assert lab.errors == []

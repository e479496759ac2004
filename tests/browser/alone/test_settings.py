"""The settings of the charts: smoothing, the x axis, limits, and files."""

import csv
import io
import re
import time

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.fixture
def opened(alone, make_place):
    place = make_place(trials=12)
    place.fill(ended=9)
    page = alone().show(place)
    page.view.get_by_role("button", name="Settings").click()
    expect(field(page, "Smoothing")).to_be_visible()
    return page


def field(page, name):
    return page.view.get_by_label(name, exact=True)


def colours(page):
    """Return the colours that the first chart is drawn with, and how many pixels of each."""
    return page.view.locator("canvas").first.evaluate("(canvas) => canvas.toDataURL()")


def test_smoothing_is_set_by_keyboard_and_the_reported_value_is_still_told(opened):
    before = colours(opened)
    slider = field(opened, "Smoothing")
    slider.focus()
    for _ in range(6):
        opened.page.keyboard.press("PageUp")
    expect(opened.view.locator("output")).to_have_text("0.60")
    opened.until(lambda: colours(opened) != before)
    box = opened.view.locator(".u-over").bounding_box()
    opened.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
    expect(opened.view.locator(".at-tip").first).to_contain_text("reported")
    opened.screenshot("smooth")
    assert opened.errors == []


def test_curves_lie_along_steps_the_time_of_the_trial_or_the_time_of_day(opened):
    last = [colours(opened)]
    for axis, head in (("Time of the trial", " s · step"), ("Time of day", ":"), ("Step", "^step")):
        field(opened, "Along the x axis").select_option(axis)
        opened.until(lambda: colours(opened) != last[-1])
        last.append(colours(opened))
        box = opened.view.locator(".u-over").bounding_box()
        opened.page.mouse.move(box["x"] + 5, box["y"] + 40)
        opened.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
        expect(opened.view.locator(".at-tip-head").first).to_have_text(re.compile(head))
        opened.page.mouse.move(2, 2)
    assert len(set(last)) >= 3
    assert opened.errors == []


@pytest.fixture
def own_steps(alone, make_place):
    """Return a trial whose metrics count steps of their own: loss by batch with the epoch, val_acc by epoch."""
    place = make_place(trials=2)
    for number in (1, 2):
        place.begin(number)
        for step in range(201):
            place.report(number, [("loss", step, 1 / (step + 1)), ("epoch", step, step / 40)])
            if step % 40 == 0:
                place.report(number, [("val_acc", step // 40, step / 200), ("epoch", step, step / 40)])
    return alone().show(place)


def reading(page, key):
    """Return what the reading line tells after a key."""
    page.painted()  # another tab makes another chart
    page.view.get_by_role("img").first.focus()
    page.page.keyboard.press("Escape")
    page.page.keyboard.press(key)
    return page.view.locator(".at-tip-head").first


def test_metrics_with_steps_of_their_own_lie_along_their_own_steps(own_steps):
    page = own_steps
    expect(reading(page, "ArrowLeft")).to_have_text("step 5")
    expect(page.view.locator(".at-tip").first).to_contain_text("trial 1 ★1")
    page.view.get_by_role("tab", name="loss").click()
    expect(reading(page, "ArrowLeft")).to_have_text("step 200")
    page.view.get_by_role("tab", name="All").click()
    page.screenshot("own-steps")


def test_curves_lie_along_another_metric_that_is_reported_too(own_steps):
    page = own_steps
    page.view.get_by_role("button", name="Settings").click()
    axis = field(page, "Along the x axis")
    expect(axis.locator("optgroup option")).to_have_text(["val_acc", "loss", "epoch"])
    axis.select_option("epoch")
    expect(reading(page, "ArrowLeft")).to_have_text("epoch 5 · step 5")
    page.view.get_by_role("tab", name="loss").click()
    expect(reading(page, "ArrowLeft")).to_have_text("epoch 5 · step 200")
    for _ in range(40):
        page.page.keyboard.press("ArrowLeft")
    expect(page.view.locator(".at-tip-head").first).to_have_text("epoch 4 · step 160")
    page.screenshot("along-epoch")
    page.view.get_by_role("button", name="Table").click()
    table = page.view.get_by_role("region", name="Values of loss")
    expect(table.get_by_role("columnheader").first).to_have_text("epoch")
    expect(table.get_by_role("row").last).to_have_text("50.0049750.004975")
    page.view.get_by_role("button", name="Table").click()
    page.view.get_by_role("tab", name="epoch").click()
    expect(reading(page, "ArrowLeft")).to_have_text("step 200")


def test_limits_of_the_y_axis_hold_for_their_metric_and_are_taken_back_by_emptying_them(opened):
    low = field(opened, "Minimum of the y axis")
    high = field(opened, "Maximum of the y axis")
    expect(low).to_have_attribute("placeholder", "-0.1")
    low.fill("0.5")
    high.fill("0.9")
    expect(low).to_have_attribute("placeholder", "0.5")
    expect(high).to_have_attribute("placeholder", "0.9")
    opened.screenshot("limits")
    opened.view.get_by_role("tab", name="loss").click()
    expect(low).to_have_value("")
    opened.view.get_by_role("tab", name="val_acc").click()
    expect(low).to_have_value("0.5")
    low.fill("")
    high.fill("")
    expect(low).to_have_attribute("placeholder", "-0.1")


def test_a_limit_that_leaves_nothing_between_is_not_taken(opened):
    field(opened, "Minimum of the y axis").fill("7")
    field(opened, "Maximum of the y axis").fill("3")
    opened.painted()
    expect(field(opened, "Maximum of the y axis")).to_have_attribute("placeholder", "1.02")
    assert opened.errors == []


def test_the_points_of_a_chart_are_saved_as_csv_without_hidden_trials(opened):
    opened.view.get_by_role("button", name="Curves of trial 3").click()
    with opened.page.expect_download() as saved:
        opened.view.get_by_role("button", name="Save the points: CSV").click()
    assert saved.value.suggested_filename == "digits-val_acc.csv"
    rows = list(csv.DictReader(io.StringIO(saved.value.path().read_text())))
    assert {row["metric"] for row in rows} == {"val_acc"}
    assert {int(row["trial"]) for row in rows} == {1, 2, 4, 5, 6, 7, 8, 9, 10, 11}
    assert [int(row["step"]) for row in rows if row["trial"] == "4"] == list(range(12))
    assert all(abs(float(row["time_s"]) - time.time()) < 600 for row in rows)


def test_a_chart_is_saved_as_a_picture(opened):
    with opened.page.expect_download() as saved:
        opened.view.get_by_role("button", name="Save the picture: PNG").click()
    assert saved.value.suggested_filename == "digits-val_acc.png"
    data = saved.value.path().read_bytes()
    assert data.startswith(b"\x89PNG")
    width, height = (int.from_bytes(data[at : at + 4]) for at in (16, 20))
    assert width > 600
    assert height > 280

"""The table of trials: what is in sight, how it is told apart, and what a person can do to a trial."""

import time

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

ENDS = {
    "EARLY_STOPPED": "worse than the median of 3 trials at step 12",
    "LOST": "its machine was restarted",
    "CANCELLED": "stopped on request",
}


@pytest.fixture
def place(make_place):
    made = make_place(trials=14)
    made.began_s = time.time()
    made.fill(ended=6, running=2)
    for number, (state, reason) in enumerate(ENDS.items(), start=9):
        made.begin(number, lr=0.01 * number, width=32, dropout=0.1)
        made.curve(number, range(20))
        made.end(number, state, reason)
    return made


def row(page, number):
    return page.view.locator(f".at-trials tbody tr[data-trial='{number}']")


def test_the_best_trial_stays_in_sight_whatever_the_order_and_the_scrolling(alone, make_place):
    place = make_place(trials=40)
    place.fill(ended=38)
    page = alone().show(place)
    best = page.view.locator("tr[data-best]")
    number = place.experiment.best.number
    for head in ("#", "lr", "Time"):
        page.view.get_by_role("columnheader", name=head).get_by_role("button").click()
        page.painted()
        expect(page.view.locator(".at-trials tbody tr").first).to_have_attribute("data-trial", str(number))
        page.view.locator(".at-trials tbody tr").last.scroll_into_view_if_needed()
        expect(best).to_be_in_viewport()
    assert page.view.locator(".at-scroll").evaluate("(el) => el.scrollTop") > 100
    page.screenshot("best-scrolled")


def test_each_state_has_a_sign_and_a_word_of_its_own(alone, place):
    page = alone().show(place)
    cells = page.view.locator(".at-trials .at-state").evaluate_all(
        "(cells) => cells.map((cell) => [cell.dataset.sign, cell.textContent])"
    )
    told = dict(map(tuple, cells))
    assert len({text for _, text in cells}) == len(told) == 6
    assert all(told)
    page.screenshot("states")


def test_without_an_objective_the_metrics_stand_in_the_table(alone, make_place):
    place = make_place(trials=4, objective="")
    place.fill(ended=2)
    page = alone().show(place)
    heads = page.view.locator(".at-trials thead th").all_inner_texts()
    assert heads[1:5] == ["State", "val_acc", "loss", "train/grad_norm"]
    expect(row(page, 1)).to_contain_text("0.7")


def test_columns_of_metrics_and_parameters_are_chosen_by_keyboard(alone, place):
    page = alone().show(place)
    keyboard = page.page.keyboard
    page.view.locator("summary", has_text="Columns").focus()
    keyboard.press("Enter")
    page.view.get_by_role("checkbox", name="loss").focus()
    keyboard.press("Space")
    expect(page.view.get_by_role("columnheader", name="loss")).to_be_visible()
    expect(page.view.get_by_role("checkbox", name="loss")).to_be_focused()
    page.view.get_by_role("checkbox", name="width").focus()
    keyboard.press("Space")
    expect(page.view.get_by_role("columnheader", name="width")).to_have_count(0)
    keyboard.press("Escape")
    expect(page.view.get_by_role("checkbox", name="loss")).to_be_hidden()
    assert page.errors == []


def test_pointing_at_a_row_shows_its_curve_and_pointing_at_a_curve_its_row(alone, place):
    page = alone().show(place)
    green = (27, 158, 119)
    page.until(lambda: page.ink(green, 25) > 0)
    before = page.ink(green, 25)
    row(page, 3).hover()
    page.until(lambda: page.ink(green, 25) > 1.5 * before)
    box = page.view.locator(".u-over").bounding_box()
    page.page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] * 0.2)
    expect(page.view.locator("tr[data-hover]")).to_have_count(1)
    page.page.mouse.move(2, 2)
    expect(page.view.locator("tr[data-hover]")).to_have_count(0)


def test_a_trial_is_hidden_from_charts_and_their_tables_and_shown_again(alone, place):
    page = alone().show(place)
    page.view.get_by_role("button", name="Table").click()
    column = page.view.get_by_role("columnheader", name="trial 9", exact=True)
    expect(column).to_have_count(1)
    swatch = row(page, 9).get_by_role("button", name="Curves of trial 9")
    swatch.click()
    expect(swatch).to_have_attribute("aria-pressed", "false")
    expect(column).to_have_count(0)
    page.view.get_by_role("button", name="Show 1 hidden trial").click()
    expect(swatch).to_have_attribute("aria-pressed", "true")
    expect(column).to_have_count(1)


def test_a_curve_goes_and_comes_the_moment_its_trial_is_hidden_and_shown_by_the_keyboard(alone, make_place):
    place = make_place(trials=8)
    place.fill(ended=6, running=2)
    page = alone().show(place)
    magenta = (194, 78, 154)
    page.until(lambda: page.ink(magenta, 25) > 100)
    swatch = row(page, 4).get_by_role("button", name="Curves of trial 4")
    swatch.focus()
    page.page.keyboard.press("Enter")
    page.until(lambda: page.ink(magenta, 25) == 0)
    page.page.keyboard.press("Enter")
    page.until(lambda: page.ink(magenta, 25) > 100)


def test_a_pinned_trial_stands_on_top_below_the_best(alone, place):
    page = alone().show(place)
    pin = row(page, 7).get_by_role("button", name="Pin trial 7")
    pin.focus()
    page.page.keyboard.press("Enter")
    expect(page.view.locator(".at-trials tbody tr").nth(1)).to_have_attribute("data-trial", "7")
    expect(pin).to_be_focused()
    order = page.view.locator(".at-trials tbody tr").evaluate_all("(rows) => rows.map((row) => row.dataset.trial)")
    assert order[:4] == [str(place.experiment.best.number), "7", "1", "3"]
    expect(pin).to_have_attribute("aria-pressed", "true")


def test_a_trial_is_stopped_at_once_when_it_is_young(alone, place):
    page = alone().show(place, now_s=place.began_s)
    row(page, 7).get_by_role("button", name="Stop trial 7").click()
    assert {"kind": "stop", "trials": [7]} in page.sent
    expect(row(page, 7)).to_contain_text("Stopping")
    expect(row(page, 8)).to_contain_text("Running")
    expect(row(page, 1).get_by_role("button", name="Stop trial 1")).to_have_count(0)
    page.tell({"kind": "receipt", "text": "digits, trial 7: stopped in 0.2 s", "trials": [7]})
    expect(page.view.locator(".at-receipt")).to_contain_text("trial 7: stopped")
    assert page.errors == []


def test_stopping_asks_once_when_a_trial_has_run_for_more_than_a_minute(alone, place):
    page = alone().show(place, now_s=time.time() + 61)
    keyboard = page.page.keyboard
    stop = page.view.get_by_role("button", name="Stop", exact=True)
    stop.focus()
    keyboard.press("Enter")
    question = page.view.get_by_role("group", name="Stop 2 running trials?")
    expect(question.get_by_role("button", name="Keep running")).to_be_focused()
    page.screenshot("ask")
    keyboard.press("Escape")
    expect(question).to_have_count(0)
    expect(stop).to_be_focused()
    assert not any(message["kind"] == "stop" for message in page.sent)
    keyboard.press("Enter")
    expect(question.get_by_role("button", name="Keep running")).to_be_focused()
    keyboard.press("Shift+Tab")
    keyboard.press("Enter")
    assert {"kind": "stop", "trials": None} in page.sent
    expect(page.view.get_by_role("button", name="Stopping…")).to_be_disabled()


def test_stopping_a_trial_asks_in_its_row_and_takes_no_for_an_answer(alone, place):
    page = alone().show(place, now_s=time.time() + 61)
    row(page, 8).get_by_role("button", name="Stop trial 8").click()
    question = row(page, 8).get_by_role("group", name="Stop trial 8?")
    expect(question).to_be_visible()
    page.screenshot("ask-trial")
    question.get_by_role("button", name="Keep running").click()
    expect(question).to_have_count(0)
    expect(row(page, 8).get_by_role("button", name="Stop trial 8")).to_be_focused()
    assert not any(message["kind"] == "stop" for message in page.sent)


def test_a_narrow_view_keeps_the_reason_whole(alone, place):
    page = alone(width=430).show(place)
    reason = row(page, 4).locator(".at-reason")
    expect(reason).to_have_text("ran out of memory: 2.1 GB of 2.0 GB; lower width or batch size")
    shown = reason.evaluate("(el) => el.scrollWidth <= el.clientWidth && el.scrollHeight <= el.clientHeight + 1")
    assert shown
    assert reason.bounding_box()["width"] <= 430
    page.screenshot("narrow")


def test_of_thousands_of_trials_those_in_sight_are_in_the_page(alone, make_place):
    place = make_place(trials=1000)
    for number in range(1, 451):
        place.begin(number, lr=number / 1000)
    page = alone().show(place)
    rows = page.view.locator(".at-trials tbody tr")
    expect(page.view.get_by_role("grid", name="Trials")).to_have_attribute("aria-rowcount", "451")
    assert rows.count() < 60
    page.view.locator(".at-trials-part .at-scroll").evaluate("(each) => { each.scrollTop = 225 * 28 }")
    expect(row(page, 230)).to_have_attribute("aria-rowindex", "231")
    row(page, 230).click()
    page.page.keyboard.press("End")
    expect(row(page, 450)).to_be_focused()
    expect(row(page, 450)).to_be_in_viewport()
    assert rows.count() < 60
    page.page.keyboard.press("ArrowUp")
    expect(row(page, 449)).to_be_focused()


def test_the_focus_waits_for_its_row_while_that_is_scrolled_away(alone, make_place):
    place = make_place(trials=1000)
    for number in range(1, 301):
        place.begin(number, lr=number / 1000)
    page = alone().show(place)
    scroll = page.view.locator(".at-trials-part .at-scroll")
    row(page, 3).click()
    scroll.evaluate("(each) => { each.scrollTop = each.scrollHeight }")
    expect(row(page, 300)).to_be_in_viewport()
    expect(scroll).to_be_focused()
    page.page.keyboard.press("ArrowDown")
    expect(row(page, 4)).to_be_focused()
    expect(row(page, 4)).to_be_in_viewport()

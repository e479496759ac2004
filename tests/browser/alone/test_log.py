"""The log pane: colours, what was left out, no markup; its attempts; text found in all of it; all of it as a file."""

import base64

import pytest
from playwright.sync_api import expect

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.views.log_requests import LogRequest
from jupyter_autotrain.views.log_window import LogTailReader

pytestmark = pytest.mark.browser

CHOICE = {"trial": 1, "attempt": 0, "stream": "stdout", "rank": 0}


@pytest.fixture
def tell(alone, make_place):
    place = make_place(trials=1)
    place.begin(1)
    page = alone().show(place)
    page.view.get_by_text("Log of trial 1").click()
    page.until(lambda: any(message["kind"] == "log" for message in page.sent))  # it opens after the click

    def printed(text):
        place.log(1, text)
        read = LogTailReader(place.experiment.directory(1) / "stdout").read()
        told = {"kind": "log", **CHOICE, "text": read.text, "left_out": read.left_out}
        page.tell({**told, "bytes": len(text)})
        return page

    return printed


def test_the_log_says_how_much_stands_before_it(tell):
    page = tell("".join(f"line {i}\n" for i in range(1_440)))
    log = page.view.get_by_role("log")
    expect(log).to_contain_text("… 1,240 lines left out")
    expect(log).to_contain_text("line 1439")
    assert log.inner_text().count("line 1239\n") == 0


def test_colours_are_shown_and_everything_else_is_text(tell):
    page = tell(
        "\x1b[1;32mok\x1b[0m plain \x1b[38;5;208morange\x1b[0m \x1b[38;2;10;20;30mown\x1b[0m\n"
        "<img src=x onerror=alert(1)> & <b>bold</b>\n"
        " 10%\r100% \x1b[41mdone\x1b[0m\x07\x1b]0;title\x07\n"
    )
    log = page.view.get_by_role("log")
    expect(log).to_contain_text("ok plain orange own")
    expect(log).to_contain_text("<img src=x onerror=alert(1)> & <b>bold</b>")
    assert "100% done" in log.inner_text()
    assert "10%\n" not in log.inner_text()
    expect(log.locator("img, b")).to_have_count(0)
    expect(log.locator("span", has_text="ok")).to_have_css("font-weight", "700")
    expect(log.locator("span", has_text="ok")).to_have_css("color", "rgb(27, 158, 119)")
    expect(log.locator("span", has_text="orange")).to_have_css("color", "rgb(255, 135, 0)")
    expect(log.locator("span", has_text="own")).to_have_css("color", "rgb(10, 20, 30)")
    expect(log.locator("span", has_text="done")).to_have_css("background-color", "rgb(209, 73, 91)")
    page.screenshot("log")
    assert page.errors == []


def asked(page, kind):
    """Return the last message of a kind that the view has sent."""
    page.until(lambda: any(message["kind"] == kind for message in page.sent))
    return [message for message in page.sent if message["kind"] == kind][-1]


@pytest.fixture
def searched(alone, make_place):
    """Return the log of one trial, and a function that looks for a text and answers as a kernel does."""
    place = make_place(trials=1)
    place.begin(1)
    place.log(1, "".join(f"epoch {i}: \x1b[31mlo\x1b[0mss {'nan' if i % 500 == 7 else i}\n" for i in range(5_000)))
    page = alone().show(place)
    page.view.get_by_text("Log of trial 1").click()

    def answer(query, match):
        def is_asked():
            found = [message for message in page.sent if message["kind"] == "search"]
            return bool(found) and (found[-1]["query"], found[-1]["match"]) == (query, match)

        page.until(is_asked)
        request = asked(page, "search")
        page.tell(dict(LogRequest.of(place.experiment, request).found(request)))

    return page, answer


def test_text_is_found_in_the_whole_log_and_its_matches_are_gone_through_by_keyboard(searched):
    page, answer = searched
    find = page.view.get_by_role("searchbox", name="Find in the whole log")
    current = page.view.locator("mark.at-current")
    find.fill("LOSS NAN")
    answer("LOSS NAN", 1)
    expect(page.view.get_by_text("1 of 10")).to_be_visible()
    expect(page.view.get_by_role("log")).to_contain_text("epoch 7: loss nan")
    assert "".join(current.all_inner_texts()) == "loss nan"  # over several colours
    find.press("Enter")
    answer("LOSS NAN", 2)
    expect(page.view.get_by_text("2 of 10")).to_be_visible()
    expect(page.view.get_by_role("log")).to_contain_text("… 407 lines left out")
    expect(current.first).to_be_in_viewport()
    page.screenshot("log-found")
    for match in (1, 10):
        find.press("Shift+Enter")
        answer("LOSS NAN", match)
    expect(page.view.get_by_text("10 of 10")).to_be_visible()
    page.view.get_by_role("button", name="Next match (Enter)").click()
    answer("LOSS NAN", 1)
    find.fill("nowhere")
    answer("nowhere", 1)
    expect(page.view.get_by_text("not found")).to_be_visible()
    page.tell({"kind": "log", **CHOICE, "text": "the end", "left_out": "", "bytes": 7})
    find.press("Escape")
    expect(page.view.get_by_role("log")).to_have_text("the end")
    expect(find).to_have_value("")
    assert page.errors == []


def test_a_match_of_another_log_or_of_another_text_is_not_shown(searched):
    page, answer = searched
    page.view.get_by_role("searchbox").fill("nan")
    answer("nan", 1)
    expect(page.view.get_by_text("1 of 10")).to_be_visible()
    page.view.get_by_role("button", name="stderr").click()
    answer("nan", 1)
    expect(page.view.get_by_text("not found")).to_be_visible()
    found = {"query": "nan", "total": 3, "match": 1, "text": "nan", "left_out": "", "place": 0}
    page.tell({"kind": "found", **CHOICE, **found})
    page.painted()
    expect(page.view.get_by_text("not found")).to_be_visible()


def test_the_log_of_an_earlier_attempt_is_shown_when_it_is_chosen(alone, make_place):
    place = make_place(trials=1)
    place.begin(1)
    place.end(1, "FAILED", "out of memory")
    page = alone().show(place)
    page.view.get_by_text("Log of trial 1").click()
    chooser = page.view.get_by_label("Attempt whose log is shown")
    expect(chooser).to_be_hidden()
    for state in (TrialState.WAITING, TrialState.PREPARING, TrialState.RUNNING):
        place.store.change_state(place.id, 1, state, 1.0)
    page.update(place)
    expect(chooser.locator("option")).to_have_text(["attempt 1", "attempt 2 (present)"])
    expect(chooser).to_have_value("0")
    chooser.select_option("attempt 1")
    page.until(lambda: asked(page, "log")["attempt"] == 1)
    page.tell({"kind": "log", **CHOICE, "text": "of the second", "left_out": "", "bytes": 7})
    page.tell({"kind": "log", **CHOICE, "attempt": 1, "text": "of the first", "left_out": "", "bytes": 7})
    expect(page.view.get_by_role("log")).to_have_text("of the first")
    page.screenshot("log-attempts")


def test_the_log_is_of_the_best_trial_tells_its_state_and_stays_when_another_becomes_the_best(alone, make_place):
    place = make_place(trials=3)
    for number, value in ((1, 0.5), (2, 0.9), (3, 0.1)):
        place.begin(number)
        place.report(number, [("val_acc", 0, value)])
    page = alone().show(place)
    title = page.view.locator("summary").filter(has_text="Log of")
    expect(title).to_have_text("Log of trial 2 · best · Running")
    title.click()
    place.end(2, "FAILED", "out of memory")
    page.update(place)
    expect(title).to_have_text("Log of trial 2 · best · Failed")
    place.report(3, [("val_acc", 1, 0.95)])
    page.update(place)
    expect(title).to_have_text("Log of trial 2 · Failed")
    assert asked(page, "log")["trial"] == 2


def test_the_whole_log_is_saved_as_a_file_or_its_place_is_told(alone, make_place):
    place = make_place(trials=1)
    place.begin(1)
    page = alone().show(place)
    page.view.get_by_text("Log of trial 1").click()
    data = b"line\n" * 100_000 + b"\xff"
    (place.experiment.directory(1)).mkdir(parents=True, exist_ok=True)
    (place.experiment.directory(1) / "stdout").write_bytes(data)
    page.view.get_by_role("button", name="Download").click()
    told, found = LogRequest.of(place.experiment, asked(page, "download")).as_file()
    with page.page.expect_download() as saved:
        page.tell(dict(told), [base64.b64encode(found).decode()])
    assert saved.value.suggested_filename == "digits-trial-1-stdout.txt"
    assert saved.value.path().read_bytes() == data
    page.tell({**told, "text": "It has 3 GB, too much for this page. It is in /home/ada/stdout"}, [""])
    expect(page.view.get_by_text("It is in /home/ada/stdout")).to_be_visible()

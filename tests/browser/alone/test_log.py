"""The log pane: colours, what was left out, and no markup."""

import pytest
from playwright.sync_api import expect

from jupyter_autotrain.views.log_tail import LogTailReader

pytestmark = pytest.mark.browser


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
        told = {"kind": "log", "trial": 1, "stream": "stdout", "rank": 0, "text": read.text, "left_out": read.left_out}
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

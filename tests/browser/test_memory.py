"""The memory of a tab that follows a running experiment: an hour of updates leaves no more than their points."""

from __future__ import annotations

import sys
from itertools import pairwise
from statistics import median

import pytest

from tests.browser.filled_home import FilledHome
from tests.browser.jupyter_lab import wait_for

AN_HOUR = 1200  # updates at one in three seconds, as the page loads them
PARTS = 4
MOST_GROWTH_BYTES = 3_000_000  # in a part of the updates: a point of a curve is 24 bytes
MOST_NEW_NODES = 300
MOST_NEW_LISTENERS = 100
POINTS = 100  # an update has

pytestmark = pytest.mark.browser


class Tab:
    """A page and what Chromium knows of its memory."""

    def __init__(self, page) -> None:
        self.page = page
        self.cdp = page.context.new_cdp_session(page)
        self.cdp.send("HeapProfiler.enable")

    def memory(self) -> dict[str, float]:
        """Bytes of JavaScript, elements and listeners after what nobody holds is gone."""
        self.cdp.send("HeapProfiler.collectGarbage")
        used = self.cdp.send("Runtime.getHeapUsage")["usedSize"]
        counted = self.cdp.send("Memory.getDOMCounters")
        return {"bytes": used, "nodes": counted["nodes"], "listeners": counted["jsEventListeners"]}


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("updates", [24, AN_HOUR])
def test_updates_leave_no_more_than_their_points(browser, server, capsys, updates):
    with FilledHome(server) as home, home.page(browser) as page:
        home.some_experiments()
        page.evaluate("() => { window.jupyterapp.commands.execute('autotrain:show-experiments') }")
        page.evaluate("() => { window.jupyterapp.commands.execute('autotrain:open-experiment', {id: 's2'}) }")
        page.locator(".jp-Autotrain-panel canvas").first.wait_for()
        tab = Tab(page)
        answered = []
        page.on("requestfinished", lambda request: answered.append(request.url))
        found = []
        for part in range(PARTS):
            update(home, page, answered, part, updates // PARTS)
            found.append(tab.memory())
        with capsys.disabled():
            sys.stdout.write(f"\na tab after each part of {updates} updates ({len(answered)} requests): {found}\n")
        assert growth(found, "bytes") < MOST_GROWTH_BYTES
        assert growth(found, "nodes") < MOST_NEW_NODES
        assert growth(found, "listeners") < MOST_NEW_LISTENERS


def growth(found, name):
    """Return how much each part adds, whatever is loaded once: on a busy machine that comes late."""
    return median(after[name] - before[name] for before, after in pairwise(found))


def update(home, page, answered, part, times):
    """Return a part of the updates, each of values and a note; the next comes once the page has asked for this one."""
    for number in range(times):
        before = len([url for url in answered if "/experiments?" in url])
        home.fill.report("s2", 1, [0.5 + number % 7 / 100] * POINTS)
        home.fill.store.annotate_experiment("s2", note=f"update {part}.{number}")

        def is_followed(before=before):
            page.wait_for_timeout(20)  # lets the page's events arrive
            return len([url for url in answered if "/experiments?" in url]) > before

        wait_for(is_followed, 60, "the page does not follow")

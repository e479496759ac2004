"""The preview of a plan in another language: nothing stays English but what the plan itself names."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import expect

from jupyter_autotrain.parallel import api
from tests import example_graphs
from tests.browser.alone.conftest import Alone

pytestmark = pytest.mark.browser

# A pseudo-locale without Latin letters; the names in the plan have none either, so any that is seen is untranslated.
SPEAK = """() => {
    const foreign = (text) => text.replace(/%\\d|[a-z]/gi, (one) => (one[0] === '%' ? one : 'ж'));
    const filled = (text, values) => text.replace(/%(\\d)/g, (_, place) => values[place - 1]);
    const trans = {
        __: (text, ...values) => filled(foreign(text), values),
        _n: (one, many, amount, ...values) => filled(foreign(amount === 1 ? one : many), [amount, ...values]),
    };
    document.addEventListener('autotrain:ask-translator', ({ detail }) => { detail.trans = trans; });
}"""
READ = """(root) => {
    const found = [];
    for (const node of [root, ...root.querySelectorAll('*')]) {
        for (const child of node.childNodes) if (child.nodeType === Node.TEXT_NODE) found.push(child.data);
        for (const name of ['aria-label', 'aria-valuetext', 'title', 'placeholder'])
            if (node.hasAttribute(name)) found.push(node.getAttribute(name));
    }
    return found;
}"""
UNITS = re.compile(r"(?<=\d )([munµ]?s|[kKMGTP]?i?B(/s)?|[kMGTP]?FLOP|[kMBTP])\b|ZeRO|\b(?=\d)[\d.]+[kMBTP]\b")
NAMES = {"name", "plan", "op", "label", "device", "reason", "search", "schedule", "code", "dtype", "recompute", "text"}
LISTS = {"notes", "caveats", "unknown", "axes", "placements"}
KEYS = {"sent_bytes", "unsupported_work", "recompute"}  # whose keys are names


def foreign(text: str) -> str:
    return re.sub("[A-Za-z]", "д", text)


def renamed(value: Any, key: str = "") -> Any:
    """Return a part of a view with other names for all that is not a word of ours."""
    if isinstance(value, dict):
        names = foreign if key in KEYS else str
        return {names(name): renamed(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [renamed(part, key) for part in value]
    is_name = key in NAMES | LISTS and value != "none"
    return foreign(value) if isinstance(value, str) and is_name else value


def view_of(plan: Any) -> dict[str, Any]:
    view: dict[str, Any] = renamed(json.loads(json.dumps(plan.view()), parse_constant=lambda _: None))
    for node in view["nodes"]:
        node["kind"] = foreign(node["kind"])
    moves = [edge[way] for edge in view["edges"] for way in ("forward", "backward")]
    for move in sum(moves, [move for node in view["nodes"] for move in node["syncs"]]):
        move["what"] = foreign(move["what"])
    for row in view["candidates"]:
        row["what"] = foreign(row["what"])
    return view


@pytest.fixture(scope="module", params=["8x1xA100-40GB", pytest.param("8x2xA100-40GB", marks=pytest.mark.long)])
def plan(request) -> Any:
    """Return a plan with stages, microbatches and recompute, and one whose weights are split."""
    graph = example_graphs.gpt(width=4096, layers=48, heads=32, sequence=2048, batch=32, vocabulary=51200)
    return api.plan(graph, None, request.param, search="recursive_programming", execute=False)


@pytest.fixture
def shown(alone, plan) -> Alone:
    opened: Alone = alone(bundle="plan", width=1200)
    opened.page.evaluate(SPEAK)
    return opened.begin({"view": view_of(plan)})


def english(opened: Alone) -> list[str]:
    """Visible text and accessible names that are untranslated."""
    opened.painted()
    texts = [UNITS.sub("", text) for text in opened.view.evaluate(READ)]
    return [text for text in texts if re.search(r"[A-Za-z]{2}", text)]


def test_no_text_of_a_preview_its_edges_devices_ops_and_tables_is_english(shown):
    assert english(shown) == []
    shown.view.locator(".at-moving text").first.hover()
    expect(shown.view.locator(".at-tip")).to_be_visible()
    assert english(shown) == []
    for cell in shown.view.get_by_role("gridcell").all()[:2]:
        cell.hover()
        assert english(shown) == []
    shown.tell(
        {"kind": "explanation", "op": shown.sent[0]["op"], "seq": 0, "text": "д", "heads": ["д"], "rows": [["д"]]}
    )
    for node in shown.view.locator(".at-node").all()[:12]:
        node.click()
        assert english(shown) == []
    for button in shown.view.locator(".at-section-head button").all():
        button.click()
    assert shown.view.locator(".at-scroll table").count() == 6
    assert english(shown) == []


def test_no_text_about_another_machine_is_english(shown, plan):
    view = {**view_of(plan), "complete": False, "gap": None}
    view["cost"] = {**view["cost"], "step_s": 2 * view["cost"]["step_s"]}
    slider = shown.view.get_by_role("slider").first
    slider.press("ArrowRight")
    shown.until(lambda: shown.sent[-1]["kind"] == "replan")
    assert english(shown) == []
    shown.tell({"kind": "plan", "seq": shown.sent[-1]["seq"], "view": view, "text": "", "seconds": 0.1})
    assert english(shown) == []
    shown.tell({"kind": "refused", "seq": 99, "text": "д", "seconds": 0.1})
    assert english(shown) == []
    expect(shown.view.locator(".at-stale")).to_be_visible()


def test_a_page_that_translates_nothing_shows_english(alone, plan):
    opened: Alone = alone(bundle="plan", width=1200)
    opened.begin({"view": view_of(plan)})
    expect(opened.view.get_by_role("region", name="Memory of a rank", exact=True)).to_be_visible()
    assert len(english(opened)) > 50

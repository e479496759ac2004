"""The preview of a plan as a person meets it: what it shows, sliding, by mouse and by keyboard, in light and dark."""

import re

import pytest
from playwright.sync_api import expect

from jupyter_autotrain.parallel import api
from tests import example_graphs
from tests.browser.conftest import Lab
from tests.browser.lab_page import DARK, in_theme, new_page, open_empty
from tests.browser.notebook_page import OURS, plan_cell

pytestmark = pytest.mark.browser

# Pressed, and looked at with each frame: what it says then is there for a moment.
PRESS = """async (button) => {
    button.click();
    while (button.textContent !== 'Copied') await new Promise(requestAnimationFrame);
}"""
HAS_TRANSLATOR = """() => {
    const detail = {};
    document.dispatchEvent(new CustomEvent('autotrain:ask-translator', { detail }));
    return typeof detail.trans.__ === 'function';
}"""
BELOW = """([graph, devices]) =>
    devices.getBoundingClientRect().top > graph.getBoundingClientRect().bottom - 1"""


def cell(folder, **words):
    """Return the cell that shows a plan, which is made once: that takes seconds."""
    graph = example_graphs.gpt(width=20480, layers=8, heads=160, sequence=2048, batch=32, vocabulary=51200)
    plan = api.plan(graph, cluster="8x8xA100-80GB", search="recursive_programming", **words)
    return plan_cell(plan, folder)


@pytest.fixture(scope="module")
def show(tmp_path_factory):
    return cell(tmp_path_factory.mktemp("plan"))


@pytest.fixture
def shown(lab, show):
    lab.open(show)
    lab.run_all()
    expect(lab.view.get_by_role("heading", name="gpt-20480x8 on 64 \u00d7 A100-80GB")).to_be_visible()
    return lab


def section(lab, name):
    return lab.view.get_by_role("region", name=name, exact=True)


def node(lab, name):
    return section(lab, "Model").get_by_role("button", name=re.compile(rf"^{re.escape(name)},"))


def grow(lab):
    """Make the page as high as the view, so that a picture of the view has all of it."""
    lab.page.set_viewport_size({"width": 1260, "height": 1560})
    lab.page.set_viewport_size({"width": 1260, "height": int(lab.view.bounding_box()["height"]) + 400})
    lab.view.scroll_into_view_if_needed()


def test_a_plan_whose_code_runs_is_seen_with_its_proof_its_parts_and_its_rivals(shown):
    view = shown.view
    expect(view.locator(".at-badge").first).to_have_text(re.compile(r"At most \d+ % from best|Proven best, gap 0"))
    expect(view.locator(".at-figures")).to_contain_text(
        re.compile(r"step[\d.]+ s.*memory per rank[\d.]+ GiBof [\d.]+ GiB usable of 80 GiB")
    )
    expect(section(shown, "Model").get_by_text("\u00d7 8")).to_be_visible()
    expect(section(shown, "Model").locator(".at-moving").first).to_be_visible()
    expect(section(shown, "Devices").get_by_role("gridcell")).to_have_count(64)
    expect(section(shown, "One step").get_by_role("img")).to_have_attribute(
        "aria-label", re.compile(r"forward \d+ %, backward \d+ %, exposed communication")
    )
    expect(section(shown, "Memory of a rank")).to_contain_text(re.compile(r"[\d.]+ GiB of 7\d(\.\d)? GiB"))
    rows = view.locator(".at-candidates tbody tr")
    expect(rows.first).to_contain_text("found plan")
    sent = view.locator(".at-candidates thead th").all_inner_texts().index("sent")
    expect(rows.first.locator("th, td").nth(sent)).to_have_text(re.compile(r"^[\d.]+ ([KMGT]i)?B$"))
    expect(rows.filter(has_text=re.compile("^DDP"))).to_contain_text(re.compile("✕ the batch, the layers"))
    expect(view.get_by_text(re.compile(r"The runner-up [\s\S]* slower\s+per\s+step"))).to_be_visible()
    expect(shown.status).to_contain_text("Planned for 64 \u00d7 A100-80GB")
    expect(view.get_by_text("The code does not run as it stands")).to_be_hidden()
    assert shown.page.evaluate(HAS_TRANSLATOR)
    grow(shown)
    shown.screenshot("plan_light")
    assert shown.errors == []


def test_an_edge_tells_what_is_sent_an_op_where_its_weights_lie_and_a_tensor_who_holds_which_slice(shown):
    an_edge_tells_what_is_sent(shown)
    node(shown, "mlp.c_fc").click()
    the_weights_of_the_op_lie_as_its_tensors_say(shown)
    chip = shown.view.get_by_role("button", name=re.compile("c_fc.weight"))
    chip.hover()
    devices = section(shown, "Devices")
    reading = devices.locator(".at-reading")
    slices = re.compile(r"(\d+) slices along dim 0, each held by (\d+) devices")
    expect(reading).to_contain_text(slices)
    parts, holders = map(int, slices.search(reading.inner_text()).groups())
    assert parts * holders == 64
    chip.click()
    devices.get_by_role("gridcell").nth(9).hover()
    expect(reading).to_contain_text(re.compile(r"Device 9 holds h\.0\.mlp\.c_fc\.weight\[\d+:\d+, :\], as .* do\."))
    expect(devices.locator("[data-same]")).to_have_count(holders)
    grow(shown)
    devices.get_by_role("gridcell").nth(9).hover()
    shown.screenshot("plan_slices")


def the_weights_of_the_op_lie_as_its_tensors_say(shown):
    chosen = section(shown, "Chosen op")
    split = re.compile(r"split into \d+ parts, (copies on \d+ ranks|one on each rank)")
    expect(chosen.get_by_role("listitem").filter(has_text="parameters")).to_contain_text(split)
    expect(chosen).not_to_contain_text("whole on every rank")
    expect(chosen.get_by_role("button", name=re.compile("c_fc.weight"))).to_contain_text("S(0)")


def test_code_that_does_not_run_as_it_stands_is_marked(lab, tmp_path):
    outermost = {"mesh": (2, 32), "ops": {"lm_head*": ("n", "batch"), "*": (None, "batch")}, "zero": 3}
    lab.open(cell(tmp_path, pins=outermost, memory_limit="1TB"))
    lab.run_all()
    missing = lab.view.get_by_text("The code does not run as it stands")
    expect(missing).to_be_visible()
    missing.click()
    expect(lab.view.locator(".at-missing li").first).to_be_visible()
    lab.view.get_by_role("button", name="Code", exact=True).click()
    expect(lab.view.locator(".at-log").first).to_contain_text("# Does not run as it stands:")


def an_edge_tells_what_is_sent(shown):
    section(shown, "Model").locator(".at-moving text").first.hover()
    tip = section(shown, "Model").locator(".at-tip")
    expect(tip).to_be_visible()
    expect(tip).to_contain_text(re.compile(r"forward: .*over (data|tensor).*, [\d.]+ [KMG]iB sent per rank"))
    shown.screenshot("plan_edge")


def test_sliding_plans_anew_and_the_way_back_is_there(shown):
    usable = shown.view.get_by_role("slider", name="Memory").get_attribute("aria-valuetext")
    assert re.fullmatch(r"7\d(\.\d)? GiB", usable)
    slider = shown.view.get_by_role("slider", name="Devices")
    slider.focus()
    shown.page.keyboard.press("ArrowRight")
    shown.page.keyboard.press("ArrowRight")
    expect(shown.view.get_by_role("heading", name="gpt-20480x8 on 128 \u00d7 A100-80GB")).to_be_visible()
    expect(slider).to_have_attribute("aria-valuetext", "128")
    expect(shown.status).to_contain_text(re.compile(r"per step, [\d.]+ \u00d7 as fast\. .* by the instant search"))
    expect(shown.view.locator(".at-candidates tbody tr").nth(1)).to_contain_text("before")
    expect(shown.view.get_by_text(re.compile(r"The runner-up [\s\S]* (slower|faster)"))).to_be_visible()
    grow(shown)
    shown.screenshot("plan_what_if")
    memory = shown.view.get_by_role("slider", name="Memory")
    memory.focus()
    shown.page.keyboard.press("Home")
    expect(shown.status).to_contain_text("The least memory that would do is")
    still = shown.view.locator(".at-stale")
    expect(still).to_have_text(
        re.compile("^Still shows 128 \u00d7 A100-80GB with .* 128 \u00d7 A100-80GB with 2 GiB each is refused")
    )
    shown.screenshot("plan_refused")
    shown.view.get_by_role("button", name="Back to the plan").click()
    expect(shown.view.get_by_role("heading", name="gpt-20480x8 on 64 \u00d7 A100-80GB")).to_be_visible()
    expect(memory).to_have_attribute("aria-valuetext", usable)
    expect(still).to_be_hidden()
    assert shown.errors == []


def test_every_picture_has_a_data_table_and_graph_and_devices_are_reached_by_keyboard(shown):
    graph_and_devices_are_reached_by_keyboard(shown)
    for name, words in (
        ("Model", "h.ln_1"),
        ("Devices", "device"),
        ("One step", "exposed communication"),
        ("Memory of a rank", "optimizer"),
    ):
        shown.view.get_by_role("button", name=f"{name} as a table").click()
        expect(shown.view.get_by_role("region", name=f"Table: {name}").get_by_role("table")).to_contain_text(words)
    device = section(shown, "Devices").get_by_role("table")
    sides = [device.locator("th").nth(at).evaluate("(cell) => cell.getBoundingClientRect().left") for at in (0, 2)]
    assert sides[0] == sides[1], "a head stands elsewhere than its column"
    expect(device.get_by_role("columnheader", name="device")).to_have_css("text-align", "left")
    grow(shown)
    shown.screenshot("plan_tables")
    assert shown.errors == []


def graph_and_devices_are_reached_by_keyboard(shown):
    keyboard = shown.page.keyboard
    node(shown, "mlp.c_fc").focus()
    keyboard.press("Home")
    expect(node(shown, "wte")).to_be_focused()
    keyboard.press("ArrowDown")
    expect(node(shown, "embed")).to_be_focused()
    keyboard.press("Enter")
    expect(section(shown, "Chosen op").get_by_role("heading")).to_contain_text("embed")
    cells = section(shown, "Devices").get_by_role("gridcell")
    below = section(shown, "Devices").get_by_role("row").first.get_by_role("gridcell").count() + 1
    cells.first.focus()
    keyboard.press("ArrowRight")
    keyboard.press("ArrowDown")
    expect(cells.nth(below)).to_be_focused()
    expect(section(shown, "Devices").locator(".at-reading")).to_contain_text(f"Device {below} holds")


def test_the_code_is_shown_and_copied(shown):
    shown.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shown.view.get_by_role("button", name="Code", exact=True).click()
    expect(shown.view.get_by_label("The plan as code")).to_contain_text("init_device_mesh")
    shown.view.get_by_role("button", name="Copy as code").evaluate(PRESS)
    assert "share_layers" in shown.page.evaluate("() => navigator.clipboard.readText()")


@pytest.mark.long  # test_live_view.py follows the theme, and test_accessibility.py looks at the preview in the dark
def test_the_preview_follows_the_dark_theme(shown):
    with in_theme(shown.page, DARK):
        expect(shown.view.locator(".at-node text").first).to_have_css("fill", re.compile("255, 255, 255"))
        grow(shown)
        shown.screenshot("plan_dark")


@pytest.mark.long  # by default the page has a translator for each view, and alone/test_translated.py uses one
def test_the_preview_speaks_the_language_of_jupyterlab(browser, server, show):
    words = {"One step": ["Ein Schritt"], "stage %1": ["Stufe %1"], "Devices": ["Ger\u00e4te"]}
    head = {"language": "de", "plural_forms": "nplurals=2; plural=(n != 1);"}
    answer = {"data": {"jupyter_autotrain": {"": head, **words}}, "message": ""}
    with new_page(browser, ours=OURS) as page:
        page.route("**/api/translations/default**", lambda route: route.fulfill(json=answer))
        open_empty(page, server)
        lab = Lab(server, page, "german")
        lab.open(show)
        lab.run_all()
        expect(section(lab, "Ein Schritt").get_by_text("Stufe 0")).to_be_visible()
        expect(lab.view.get_by_role("slider", name="Ger\u00e4te")).to_be_visible()
        lab.leave()


def test_a_narrow_cell_puts_the_parts_below_one_another(shown):
    shown.page.set_viewport_size({"width": 800, "height": 1400})
    shown.command("application:toggle-left-area")
    graph = section(shown, "Model")
    devices = section(shown, "Devices")
    shown.page.wait_for_function("() => document.querySelector('.at-preview').clientWidth < 740")
    shown.page.wait_for_function(BELOW, arg=[graph.element_handle(), devices.element_handle()])
    shown.page.wait_for_function("(el) => el.scrollWidth <= el.clientWidth + 1", arg=shown.view.element_handle())
    shown.screenshot("plan_narrow")
    shown.page.set_viewport_size({"width": 620, "height": 1400})
    shown.page.wait_for_function("() => document.querySelector('.at-preview').clientWidth < 510")
    for table in shown.view.locator(".at-scroll:has(table):visible").all():
        shown.page.wait_for_function("(el) => el.scrollWidth <= el.clientWidth + 1", arg=table.element_handle())
    shown.screenshot("plan_very_narrow")


@pytest.mark.long  # test_untrusted.py shows what is kept of a plan, test_cell_in_lab.py loads a page anew
def test_a_notebook_opened_without_the_kernel_that_planned_shows_the_page(lab, shown):
    page = lab.page.locator(".autotrain-card")
    expect(page).to_be_hidden()
    lab.reopen_without_kernel("widget-view+json")
    expect(page).to_be_visible()
    expect(page).to_contain_text("on 8x8xA100-80GB")
    expect(page.locator("img").first).to_be_visible()
    lab.screenshot("plan-no-kernel")

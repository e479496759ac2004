"""A session in a real JupyterLab: its cells, its row in the sidebar, and its kernel."""

import pytest
from playwright.sync_api import expect

from tests.browser.lab_page import run_command

pytestmark = [pytest.mark.browser, pytest.mark.long]

CELLS = (
    "%load_ext jupyter_autotrain\n%autotrain session open lab",
    "%%autotrain --session lab\ncount = 41\nprint('in the session')",
    "%%autotrain --session lab\nfrom IPython.display import HTML\ncount += 1\nHTML(f'<b id=\"shown\">{count}</b>')",
    "%%autotrain --session lab\n1 / 0",
)

_KERNELS = """async () => {
    const { kernelspecs } = window.jupyterapp.serviceManager;
    await kernelspecs.refreshSpecs();
    return Object.values(kernelspecs.specs.kernelspecs).map((spec) => spec.display_name);
}"""


def test_cells_of_a_session_are_shown_as_cells_and_the_sidebar_has_it_until_it_is_closed(lab):
    lab.open(*CELLS)
    lab.run_all()
    expect(lab.page.locator(".jp-OutputArea-output", has_text="in the session").first).to_be_visible()
    expect(lab.page.locator("b#shown")).to_have_text("42")
    expect(lab.page.locator(".jp-OutputArea-output", has_text="ZeroDivisionError").first).to_be_visible()
    run_command(lab.page, "autotrain:show-experiments")
    row = lab.page.locator(".jp-Autotrain-item").filter(has_text="lab")
    expect(row).to_contain_text("session on local")
    expect(row).to_contain_text("open for")
    lab.screenshot("session-running")
    names = lab.page.evaluate(_KERNELS)
    assert "Python on lab" in names
    lab.add_and_run("%autotrain session close lab")
    expect(lab.page.locator(".jp-OutputArea-output", has_text="Session lab is closed.")).to_be_visible()

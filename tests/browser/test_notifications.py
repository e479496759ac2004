"""Which ends of experiments are told: the values of the setting, chosen in JupyterLab's editor of settings."""

from __future__ import annotations

from functools import partial

import pytest

from jupyter_autotrain.agent.states import TrialState
from tests.browser.lab_page import run_command
from tests.browser.sidebar_page import add, end
from tests.browser.toasts import Toasts
from tests.matrices import long_besides

pytestmark = pytest.mark.browser

TOLD = {"failed": ["FAILED"], "none": [], "all": ["FAILED", "SUCCEEDED"]}


def choose(page, value):
    """Choose which ends are told; returns in a page that has begun with it."""
    run_command(page, "settingeditor:open", query="Autotrain")
    another = "failed" if value == "none" else "none"  # the usual one is kept only where another was chosen before
    for each in (another, value):
        with page.expect_response(partial(is_kept, value=each)):
            page.locator("select[id$='_notifications']").select_option(label=each)
    page.evaluate("() => window.jupyterapp.commands.execute('application:close-all')")
    page.reload()


def is_kept(response, value):
    """Return whether a response says that the server keeps this value."""
    kept = response.request.post_data if response.request.method == "PUT" else None
    return "/lab/api/settings/jupyter-autotrain" in response.url and f'\\"{value}\\"' in (kept or "")


@pytest.mark.parametrize("value", long_besides(["failed"], TOLD))
def test_ends_are_told_as_the_setting_says(sidebar, store, value):
    page = sidebar.page
    add(store, f"{value}-1", f"{value}-good", [0.5])
    add(store, f"{value}-2", f"{value}-bad", [0.5])
    add(store, f"{value}-3", f"{value}-waits")
    choose(page, value)
    page.get_by_role("button", name="2 running, 1 queued").wait_for()
    toasts = Toasts(page)
    end(store, f"{value}-1", TrialState.SUCCEEDED)
    end(store, f"{value}-2", TrialState.FAILED, "out of memory")
    page.get_by_role("button", name="0 running, 1 queued").wait_for()
    last = f"{value}: what is told has been told"
    run_command(page, "apputils:notify", message=last, type="info", options={"autoClose": False})
    toasts.until_told(last)
    assert toasts.count(f"{value}-bad failed: out of memory") == int("FAILED" in TOLD[value])
    assert toasts.count(f"{value}-good") == int("SUCCEEDED" in TOLD[value])

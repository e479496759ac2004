"""A notebook that somebody else has run: JupyterLab cleans its outputs, and the pictures of them stay."""

import json
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, Objective
from jupyter_autotrain.store import Ingest, Store
from jupyter_autotrain.views.card import card
from jupyter_autotrain.widgets.display import bundle

pytestmark = pytest.mark.browser
WIDTHS = """async (images) => {
    await Promise.all(images.map((image) => image.decode()));
    return images.map((image) => image.naturalWidth);
}"""


@pytest.fixture
def run_card(tmp_path):
    spec = ExperimentSpec("digits", Bundle(), objective=Objective("val_acc"), trials=3)
    with Store.open(Home(tmp_path / "home")) as store:
        record = store.add_experiment("e1", spec, time.time())
        for number in (1, 2, 3):
            store.add_trial("e1", number, {"lr": 0.1 / number}, time.time())
            for state in (TrialState.PREPARING, TrialState.RUNNING):
                store.change_state("e1", number, state, time.time())
            points = [("val_acc", step, 1.0, 1 - 1 / (number * step + 1)) for step in range(40)]
            points += [("loss", step, 1.0, 1 / (number * step + 1)) for step in range(40)]
            store.ingest([Ingest("e1", number, 1, "metrics", 9, points=points, objective=Objective("val_acc"))])
            store.change_state("e1", number, TrialState.SUCCEEDED, time.time())
        store.close_experiment("e1", time.time())
        return card(store, store.experiment(record.id))


def open_untrusted(lab, html, text):
    """Open a notebook with this output that this server has never signed."""
    output = {"output_type": "display_data", "metadata": {}, "data": bundle(html, text)}
    cell = {"cell_type": "code", "metadata": {}, "source": "show()", "outputs": [output], "execution_count": 1}
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    notebook = {"cells": [cell], "metadata": kernel, "nbformat": 4, "nbformat_minor": 4}
    Path(lab.server.notebooks / f"{lab.name}.ipynb").write_text(json.dumps(notebook))
    lab.show()
    trusted = "() => window.jupyterapp.shell.currentWidget.content.model.cells.get(0).trusted"
    lab.page.wait_for_function(f"() => !({trusted})()")  # until its metadata have been read it counts as trusted
    return lab.page.locator(".jp-OutputArea-output").first


def test_a_run_card_in_an_untrusted_notebook_keeps_its_picture(lab, run_card):
    output = open_untrusted(lab, run_card.html, run_card.text)
    expect(output).to_contain_text("3 of 3 trials ended")
    expect(output.locator("img")).to_be_visible()
    [width] = output.locator("img").evaluate_all(WIDTHS)
    assert width > 100
    assert "step 0" not in output.inner_text()
    lab.screenshot("untrusted-card")


def test_a_plan_in_an_untrusted_notebook_keeps_its_pictures(lab, plan):
    output = open_untrusted(lab, plan.to_html(), repr(plan))
    expect(output.locator("img")).to_have_count(4)
    assert min(output.locator("img").evaluate_all(WIDTHS)) > 100
    assert "stage 0" not in output.inner_text()
    assert "--ink" not in output.inner_text()
    lab.screenshot("untrusted-plan")

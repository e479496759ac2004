"""Tests that pictures of trials are seen in the live view and in the card that the notebook keeps."""

import json

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install -e '.[test]'")

LOAD = "%load_ext jupyter_autotrain"
CELL = """%%autotrain drawn
objective: maximize acc
search: {lr: "choice(1, 2)"}
tuner: grid
---
%matplotlib inline
import matplotlib.pyplot as plt
from IPython.display import SVG, display
for step in range(2):
    report(step=step, acc=lr / 3, best="high")
    plt.plot([0, lr, step])
    plt.title(f"lr {lr}, step {step}")
    plt.show()
display(SVG(data="<svg xmlns='http://www.w3.org/2000/svg' width='90' height='60'><script>document.title='owned'"
    "</script><circle cx='30' cy='30' r='25' fill='teal'/></svg>"))
"""


def test_pictures_and_warnings_of_trials_are_seen_live_and_in_the_stored_card(lab):
    lab.open(LOAD, CELL)
    lab.run_all()
    images = lab.view.locator("img.at-picture")
    expect(images).to_have_count(6)
    expect(lab.view.get_by_label("Warnings")).to_contain_text("best is 'high' (str), not one number")
    for index in range(6):
        expect(images.nth(index)).to_have_js_property("complete", True)
        assert images.nth(index).evaluate("image => image.naturalWidth") > 50
        assert images.nth(index).get_attribute("src").startswith("data:image/")
    expect(lab.view.get_by_text("Trial 2, step 1").first).to_be_visible()
    expect(lab.view).to_contain_text("2 of 2 trials")
    images.first.scroll_into_view_if_needed()
    lab.screenshot("pictures")
    text = lab.saved("SUCCEEDED  2 of 2")
    outputs = json.dumps([cell["outputs"] for cell in json.loads(text)["cells"]])
    assert "Picture of trial 2, step 1" in outputs
    assert "<script" not in outputs
    assert "owned" not in lab.page.title()
    assert lab.errors == []

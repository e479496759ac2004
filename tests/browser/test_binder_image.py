"""The quickstart in what Binder's image has, opened as the badge of the README opens it; `.ci/binder` makes it."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from jupyter_autotrain.core.home import Home
from tests.browser.conftest import Lab
from tests.browser.jupyter_lab import START_S, Server, answers, end_server, wait_for
from tests.browser.lab_page import new_page
from tests.browser.notebook_page import OURS
from tests.server.jupyter import end_manager, free_port

IMAGE = os.environ.get("AUTOTRAIN_BINDER", "")
QUICKSTART = "example_notebooks/01_quickstart"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not IMAGE, reason="AUTOTRAIN_BINDER names no image: .ci/binder makes one"),
]


@pytest.fixture
def image() -> Iterator[Server]:
    """Yield the server that the image's start has begun in its home."""
    home = Path(IMAGE, "home")
    port = free_port()
    token = secrets.token_hex(16)
    argv = ["binder/start", "jupyter", "lab", "--no-browser", "--ip=127.0.0.1", f"--port={port}", "--allow-root"]
    argv += [f"--IdentityProvider.token={token}", "--LabApp.expose_app_in_browser=True"]
    environ = {**os.environ, "HOME": str(home), "PATH": f"{IMAGE}/env/bin:{os.environ['PATH']}"}
    log = Path(IMAGE, "server.log")
    with log.open("wb") as out:
        process = subprocess.Popen(argv, cwd=home, env=environ, stdout=out, stderr=out)
    url = f"http://127.0.0.1:{port}"
    autotrain_home = home / ".local" / "share" / "jupyter" / "autotrain"
    try:
        wait_for(lambda: answers(url, token, process, log), START_S, "JupyterLab does not answer")
        yield Server(url, token, home, autotrain_home, process.pid)
    finally:
        end_server(process)
        end_manager(Home(autotrain_home))


def test_the_quickstart_runs_beside_the_finished_experiment_of_the_image(browser, image):
    with new_page(browser, ours=OURS) as page:
        notebook = Lab(image, page, QUICKSTART)
        notebook.visit(page)
        sidebar = page.get_by_role("region", name="Experiments")
        expect(sidebar.get_by_text("digits-demo")).to_be_visible()
        notebook.run_all()
        notebook.until_run()
        assert "SUCCEEDED" in notebook.saved("digits-search")
        expect(sidebar.get_by_text("digits-search")).to_be_visible()

"""The bundle of a widget on a page of its own: no server, no kernel; the model's side is held by the test."""

from __future__ import annotations

import base64
import importlib.util
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from jupyter_autotrain.views.feed import FeedFrame, snapshot
from tests.browser.lab_page import ARE_KEPT

ARTIFACTS = Path(__file__).parents[3] / "artifacts" / "screenshots" / "alone"
STATIC = Path(__file__).parents[3] / "jupyter_autotrain" / "static"
ADDRESS = "http://view.test/"
PAGE = """<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="{bundle}.css">
<body style="margin:12px;background:{back};color-scheme:{scheme}"><main></main><script type="module">
import make from './{bundle}.js';
const bytes = (text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
let heard;
window.sent = [];
window.tell = (content, buffers) => heard(content, buffers.map(bytes));
window.begin = (state, names) => {{
    for (const name of names) state.snapshot[name] = bytes(state.snapshot[name]);
    const model = {{
        get: (name) => state[name],
        send: (message) => window.sent.push(message),
        on: (_, handler) => {{ heard = handler; }},
        off: () => {{}},
    }};
    const el = document.querySelector('main');
    const widget = make();
    widget.initialize({{ model }});
    widget.render({{ model, el }});
}};
window.ready = true;
</script>"""
DARK = {
    "--jp-ui-font-color1": "rgba(255,255,255,.87)",
    "--jp-ui-font-color2": "rgba(255,255,255,.54)",
    "--jp-border-color2": "#424242",
    "--jp-layout-color0": "#111",
    "--jp-layout-color1": "#212121",
    "--jp-layout-color2": "#424242",
}


@pytest.fixture
def make_place(tmp_path, monkeypatch) -> Callable[..., Any]:
    """Make experiments whose trials the test moves by hand."""
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location("place", Path(__file__).parents[1] / "place.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: Callable[..., Any] = module.Place
    return made


@pytest.fixture(scope="package")
def context(browser) -> Iterator[Any]:
    """Yield a context with one page: to make another takes the browser longer than most tests take."""
    opened = browser.new_context(accept_downloads=True)
    opened.new_page()
    yield opened
    opened.close()


@pytest.fixture
def alone(context) -> Iterator[Callable[..., Alone]]:
    """Load pages with one view each; none of them may have raised an error when the test ends."""
    opened: list[Alone] = []

    def new(**how: Any) -> Alone:
        opened.append(Alone(context.new_page() if opened else context.pages[0], **how))
        return opened[-1]

    yield new
    for page in opened:
        page.leave()
    for extra in context.pages[1:]:
        extra.close()
    assert [error for page in opened for error in page.errors] == []


class Alone:
    """One view on an empty page."""

    def __init__(self, page: Any, *, dark: bool = False, width: int = 900, bundle: str = "live") -> None:
        self.page = page
        self.seq = 1
        self.errors: list[str] = []
        page.on("pageerror", self._keep_error)
        page.mouse.move(0, 0)
        page.set_viewport_size({"width": width, "height": 900})
        text = PAGE.format(back="#111" if dark else "#fff", scheme="dark" if dark else "light", bundle=bundle)
        page.route(f"{ADDRESS}*", lambda route: _serve(route, text))
        page.goto(ADDRESS)
        page.wait_for_function("() => window.ready")
        if dark:
            page.evaluate(
                "(names) => Object.entries(names).forEach((pair) => document.body.style.setProperty(...pair))", DARK
            )

    def leave(self) -> None:
        """Make the page as one that begins; the view in it ends."""
        self.page.goto("about:blank")
        self.page.emulate_media(color_scheme="null")
        self.page.unroute_all()
        self.page.remove_listener("pageerror", self._keep_error)

    def _keep_error(self, error: Any) -> None:
        self.errors.append(str(error))

    @property
    def view(self) -> Any:
        """The view."""
        return self.page.locator(".autotrain")

    @property
    def sent(self) -> list[dict[str, Any]]:
        """Return what the view has sent to the kernel."""
        return list(self.page.evaluate("() => window.sent"))

    def show(self, place: Any, **changes: Any) -> Alone:
        """Show the experiment of a place as it stands; `changes` replace facts of the experiment."""
        content, buffers = _plain(snapshot(place.store, place.id, time.time(), self.seq), changes)
        return self.begin({"snapshot": {**content, **buffers}}, list(buffers))

    def begin(self, state: dict[str, Any], buffers: Sequence[str] = ()) -> Alone:
        """Make the model with this state, and a view of it; `buffers` names what is bytes in base64 in its snapshot."""
        self.page.evaluate("([state, names]) => window.begin(state, names)", [state, list(buffers)])
        return self

    def update(self, place: Any, **changes: Any) -> None:
        """Send the experiment as it stands now."""
        self.seq += 1
        content, buffers = _plain(snapshot(place.store, place.id, time.time(), self.seq), changes)
        self.tell({"kind": "frame", **content}, list(buffers.values()))

    def tell(self, content: dict[str, Any], buffers: list[str] | None = None) -> None:
        """Send a message to the view, as the kernel does."""
        self.page.evaluate("([content, buffers]) => window.tell(content, buffers)", [content, buffers or []])

    def painted(self) -> None:
        """Wait until the page has painted twice."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def until(self, condition: Callable[[], bool], timeout_s: float = 120.0) -> None:
        """Look again with each frame that the page paints, until the condition holds."""
        deadline_s = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline_s, "the page does not come to show it"
            self.painted()

    def screenshot(self, name: str) -> None:
        """Keep a picture of the view, where pictures are kept."""
        if not ARE_KEPT:
            return
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        self.view.screenshot(path=ARTIFACTS / f"{name}.png")

    def ink(self, color: tuple[int, int, int], slack: int = 40) -> int:
        """Return how many pixels of the first chart have about this colour."""
        return len(self._pixels(color, slack))

    def middle(self, color: tuple[int, int, int], slack: int = 40) -> tuple[float, float]:
        """Where the pixels of about this colour lie in the first chart on average, 0 to 1, from left and top."""
        found = self._pixels(color, slack)
        assert found, f"nothing of the colour {color} is drawn"
        return sum(x for x, _ in found) / len(found), sum(y for _, y in found) / len(found)

    def _pixels(self, color: tuple[int, int, int], slack: int) -> list[list[float]]:
        found: list[list[float]] = self.view.locator("canvas").first.evaluate(
            """(canvas, [color, slack]) => {
                const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
                const found = [];
                for (let i = 0; i < data.length; i += 4) {
                    const far = color.some((part, k) => Math.abs(part - data[i + k]) > slack);
                    if (data[i + 3] < 128 || far) continue;
                    const at = i / 4;
                    found.push([(at % canvas.width) / canvas.width, Math.floor(at / canvas.width) / canvas.height]);
                }
                return found;
            }""",
            [list(color), slack],
        )
        return found


def _plain(frame: FeedFrame, changes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    content: dict[str, Any] = json.loads(json.dumps(frame.content))
    content["experiment"].update(changes)
    columns = {"steps": frame.steps, "values": frame.values, "times": frame.times}
    return content, {name: base64.b64encode(column).decode() for name, column in columns.items()}


def _serve(route: Any, text: str) -> None:
    name = route.request.url.removeprefix(ADDRESS)
    if name in {"live.js", "live.css", "plan.js", "plan.css"}:
        kind = "text/css" if name.endswith("css") else "text/javascript"
        route.fulfill(body=(STATIC / name).read_text(), content_type=kind)
    elif name == "":
        route.fulfill(body=text, content_type="text/html")
    else:
        route.fulfill(status=404, body="")

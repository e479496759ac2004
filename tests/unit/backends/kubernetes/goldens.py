"""Golden manifests: what is sent to a cluster changes only on purpose."""

import json
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "golden" / "kubernetes"


def check_golden(config, name, manifests):
    text = json.dumps(list(manifests), indent=1) + "\n"
    path = FOLDER / name
    if config.getoption("--golden-update"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert path.read_text() == text, f"{name} changed; `make golden` rewrites it"

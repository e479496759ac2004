"""Keys that are the user's own, inside of options of a backend, stay as they are written."""

from __future__ import annotations

from jupyter_autotrain.header.aliases import canonical
from jupyter_autotrain.header.document import Document


def test_keys_of_labels_and_of_manifests_keep_their_capitals() -> None:
    settings = {"kubernetes": {"labels": {"myTeam": "a"}, "affinity": {"podAntiAffinity": {}}, "gpuProduct": "x"}}
    found = canonical(Document(data=settings)).data["kubernetes"]
    assert found == {"labels": {"myTeam": "a"}, "affinity": {"podAntiAffinity": {}}, "gpu_product": "x"}

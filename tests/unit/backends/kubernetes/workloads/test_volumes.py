"""Parts of a volume are made by the user of the trial, before a node would make them as root."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.backends.kubernetes.workloads import volumes
from jupyter_autotrain.backends.kubernetes.workloads.volumes import with_volume_folders, without_volume_folders

SECURITY = {"allowPrivilegeEscalation": False}
TEMPLATE: dict[str, Any] = {
    "spec": {
        "containers": [
            {
                "name": "trial", "image": "lab:1", "command": ["/opt/python", "-u"], "securityContext": SECURITY,
                "volumeMounts": [
                    {"name": "storage", "mountPath": "/autotrain/storage", "subPath": "team"},
                    {"name": "storage", "mountPath": "/kept", "subPath": "team/e/checkpoints"},
                    {"name": "other", "mountPath": "/other", "subPath": "x"},
                ],
            }
        ]
    }
}  # fmt: skip


def test_they_are_made_in_the_image_and_under_the_rules_of_the_trial_on_the_whole_volume() -> None:
    made: Any = with_volume_folders(with_volume_folders(TEMPLATE, "storage"), "storage")
    (maker,) = made["spec"]["initContainers"]
    assert (maker["image"], maker["command"][0], maker["securityContext"]) == ("lab:1", "/opt/python", SECURITY)
    assert maker["args"] == ["team", "team/e/checkpoints"]
    assert maker["volumeMounts"] == [{"name": "storage", "mountPath": places.STORAGE}]
    assert without_volume_folders(made) == TEMPLATE


def test_a_volume_of_which_no_part_is_mounted_needs_nothing() -> None:
    assert with_volume_folders(TEMPLATE, "nothing") == TEMPLATE


def test_a_folder_gets_the_permissions_of_the_one_that_it_lies_in(tmp_path: Path) -> None:
    tmp_path.chmod(0o2775)
    program = volumes._MAKE.replace(places.STORAGE, str(tmp_path))
    for _ in range(2):
        subprocess.run([sys.executable, "-I", "-S", "-c", program, "a/b", "a/c"], check=True)
    assert [(tmp_path / name).stat().st_mode & 0o7777 for name in ("a", "a/b", "a/c")] == [0o2775] * 3


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file")
    program = volumes._MAKE.replace(places.STORAGE, str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, "a/b"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "The volume of `storage:` has no /a/b, and user" in done.stderr

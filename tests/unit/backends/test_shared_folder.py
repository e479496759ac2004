"""Requests to trials in a folder that a service's jobs share."""

import pytest

from jupyter_autotrain.agent.pods import places, service_job
from jupyter_autotrain.backends.services import shared_folder
from jupyter_autotrain.backends.services.mounted_folder import MountedFolder
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.errors import BackendError


def test_a_request_fails_at_once_where_another_follower_has_removed_the_folder_meanwhile(tmp_path, monkeypatch):
    folder = MountedFolder({"local_path": str(tmp_path), "mount_path": "/mnt"})
    for name in (service_job.REQUESTS, service_job.ANSWERS):
        folder.storage.make_folder(f"jobs/one/{name}")
    folder.storage.write(f"jobs/one/{places.TRIAL_FILE}", b"{}")
    monkeypatch.setattr(shared_folder.time, "sleep", lambda _: folder.clear("one"))
    for _ in ("removed while it waits", "removed before"):
        with pytest.raises(BackendError, match="no running trial with the folder"):
            folder.ask(JobRef("lab", "e1-1-1", {"name": "one"}), {"do": "list", "path": "."}, 0)

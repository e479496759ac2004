"""The options of a storage that jobs of a service and this machine share."""

from __future__ import annotations

from pydantic import Field

from jupyter_autotrain.header.sections import Section
from jupyter_autotrain.header.types import LocalPath, RemotePath


class SharedStorage(Section):
    """A storage that both sides have mounted."""

    local_path: LocalPath = Field(description="Where this machine has it mounted.", examples=["/mnt/pai"])
    mount_path: RemotePath = Field(description="Where jobs have it mounted.", examples=["/mnt/confignfs"])

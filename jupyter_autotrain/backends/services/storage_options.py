"""The options of a storage that jobs of a service and this machine share."""

from __future__ import annotations

from pydantic import Field

from jupyter_autotrain.header.sections.section import Section
from jupyter_autotrain.header.types import Duration, LocalPath, Pilots, RemotePath


class SharedStorage(Section):
    """A storage that both sides have mounted."""

    local_path: LocalPath = Field(description="Where this machine has it mounted.", examples=["/mnt/pai"])
    mount_path: RemotePath = Field(description="Where jobs have it mounted.", examples=["/mnt/confignfs"])


class ReusingOptions(Section):
    """Options of a service whose jobs can run trials one after another."""

    reuse: Pilots = Field(
        default=0,
        description="Trials on one node run one after another in so many long jobs at most; 0: each is a job of its "
        "own.",
        examples=["4"],
    )
    reuse_idle: Duration = Field(
        default=60.0, description="How long such a job waits for another trial before it ends.", examples=["5m"]
    )

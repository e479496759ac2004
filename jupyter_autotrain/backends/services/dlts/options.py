"""Options of a profile for DLTS. They name a cluster and a team, never a password."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from jupyter_autotrain.backends.services.storage_options import ReusingOptions, SharedStorage
from jupyter_autotrain.header.types import LocalPath, Name, Text


class DltsOptions(ReusingOptions):
    """Options of the DLTS backend."""

    header_keys: ClassVar[tuple[str, ...]] = ("gpu_type", "preemptible")

    address: Text = Field(description="The dashboard.", examples=["https://dltshub.example.org"])
    cluster: Text = Field(
        default=".default", description="The cluster; else the dashboard's first one.", examples=["azure-eastus-p40"]
    )
    team: Name = Field(description="The team, which is its virtual cluster, too.", examples=["vision"])
    login_file: LocalPath | None = Field(
        default=None,
        description="A file in the format of netrc, with your e-mail and the key that the dashboard shows; "
        "else ~/.netrc.",
        examples=["~/.dlts_netrc"],
    )
    image: Text = Field(description="The image of trials.", examples=["pytorch/pytorch:latest"])
    storage: SharedStorage = Field(
        description="The shared storage of the cluster, such as your home there, which this machine has mounted, too; "
        "code goes there.",
        examples=["{local_path: /mnt/dlts/ada, mount_path: /home/ada}"],
    )
    gpu_type: Name | None = Field(default=None, description="The kind of GPU.", examples=["P40"])
    preemptible: bool = Field(
        default=False, description="Let jobs of others take the place of a trial.", examples=[True]
    )
    python: Text = Field(default="python3", description="The interpreter in the image.", examples=["/opt/bin/python"])
    ca_file: LocalPath | None = Field(
        default=None, description="Certificates to trust, of an address with https.", examples=["~/ca.pem"]
    )

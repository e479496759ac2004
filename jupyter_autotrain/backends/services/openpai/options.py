"""Options of a profile for OpenPAI. They name a cluster, never a token."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from jupyter_autotrain.backends.services.storage_options import ReusingOptions, SharedStorage
from jupyter_autotrain.header.types import LocalPath, Name, Size, Text


class OpenpaiOptions(ReusingOptions):
    """Options of the OpenPAI backend."""

    header_keys: ClassVar[tuple[str, ...]] = ("virtual_cluster", "sku", "shared_memory")

    address: Text = Field(description="The web portal of the cluster.", examples=["https://pai.example.org"])
    user: Name = Field(
        description="The user.",
        examples=["ada"],
    )
    login_file: LocalPath | None = Field(
        default=None,
        description="The clusters and tokens of OpenPAI's own client (`pai_uri`, `token`); else "
        "~/.openpai/clusters.yaml.",
        examples=["~/.openpai/lab.yaml"],
    )
    image: Text = Field(description="The image of trials.", examples=["pytorch/pytorch:latest"])
    storage: SharedStorage = Field(
        description="A storage of the cluster that this machine has mounted, too; code goes there.",
        examples=["{local_path: /mnt/pai, mount_path: /mnt/confignfs}"],
    )
    storage_name: Name | None = Field(
        default=None, description="What the cluster calls that storage.", examples=["confignfs"]
    )
    virtual_cluster: Name = Field(default="default", description="The virtual cluster.", examples=["research"])
    sku: Name | None = Field(
        default=None, description="The type of SKU, where the cluster is scheduled by HiveD.", examples=["K80"]
    )
    shared_memory: Size | None = Field(default=None, description="The shared memory of a trial.", examples=["4GB"])
    python: Text = Field(default="python3", description="The interpreter in the image.", examples=["/opt/bin/python"])
    ca_file: LocalPath | None = Field(
        default=None, description="Certificates to trust, of an address with https.", examples=["~/ca.pem"]
    )

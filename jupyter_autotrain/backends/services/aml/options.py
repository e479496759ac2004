"""Options of a profile for Azure Machine Learning. They name a workspace, never a key."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from jupyter_autotrain.backends.services.aml.service import MOST_PILOTS
from jupyter_autotrain.backends.services.storage_options import ReusingOptions
from jupyter_autotrain.header.types import LocalPath, Name, Pilots, Size, Text


class AmlOptions(ReusingOptions):
    """Options of the Azure Machine Learning backend."""

    header_keys: ClassVar[tuple[str, ...]] = ("instance_type", "shared_memory", "experiment_name")

    subscription: Text = Field(
        description="The id of the subscription.", examples=["7a6b2c1d-0000-4000-8000-000000000000"]
    )
    resource_group: Text = Field(description="The resource group.", examples=["research"])
    workspace: Name = Field(description="The workspace.", examples=["vision"])
    login_file: LocalPath | None = Field(
        default=None,
        description="A service principal, as `az ad sp create-for-rbac --json-auth` prints it; else `az login`.",
        examples=["~/.azure/trials.json"],
    )
    compute: Name = Field(description="The compute target of trials.", examples=["gpu-cluster"])
    image: Text = Field(description="The image of trials.", examples=["pytorch/pytorch:latest"])
    instance_type: Text | None = Field(
        default=None, description="The type of node, where the compute has several.", examples=["Standard_NC6s_v3"]
    )
    shared_memory: Size | None = Field(default=None, description="The shared memory of a trial.", examples=["4GB"])
    experiment_name: Name = Field(
        default="jupyter-autotrain", description="The experiment that Azure shows jobs under.", examples=["digits"]
    )
    datastore: Name = Field(
        default="workspaceblobstore",
        description="The blob datastore of the workspace for code and requests.",
        examples=["research_blobs"],
    )
    python: Text = Field(default="python3", description="The interpreter in the image.", examples=["/opt/bin/python"])
    address: Text = Field(
        default="https://management.azure.com",
        description="The Azure Resource Manager of another cloud.",
        examples=["https://management.chinacloudapi.cn"],
    )
    blob_address: Text | None = Field(
        default=None,
        description="The address of the datastore's account, where it has another than the usual one.",
        examples=["https://blobs.example.org"],
    )
    ca_file: LocalPath | None = Field(default=None, description="Certificates to trust.", examples=["~/ca.pem"])
    reuse: Pilots = Field(
        default=MOST_PILOTS,
        description="Trials on one node run one after another in so many long jobs at most; 0: each is a job of its "
        "own.",
        examples=["4"],
    )

"""Options of a profile for PAI-DLC. They name a workspace and what lies there, never a key."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from jupyter_autotrain.backends.services.storage_options import ReusingOptions, SharedStorage
from jupyter_autotrain.header.sections.section import Section
from jupyter_autotrain.header.types import LocalPath, Name, RemotePath, Size, Text


class DataSource(Section):
    """Storage that PAI-DLC mounts into each job: a data set of the workspace, or an address of NAS or OSS."""

    id: Name | None = Field(default=None, description="The data set of the workspace.", examples=["d-cn9dl0x3d1"])
    uri: Text | None = Field(
        default=None, description="Its address, where it is no data set.", examples=["oss://bucket.endpoint/folder/"]
    )
    mount_path: RemotePath | None = Field(
        default=None, description="Where jobs see it; else as the data set says.", examples=["/mnt/nas"]
    )


class DlcOptions(ReusingOptions):
    """Options of the PAI-DLC backend."""

    header_keys: ClassVar[tuple[str, ...]] = ("instance", "gpu_type", "priority", "shared_memory")

    region: Name = Field(description="The region.", examples=["cn-hangzhou"])
    endpoint: Text | None = Field(
        default=None,
        description="Where its interface is, else pai-dlc.REGION.aliyuncs.com.",
        examples=["pai-dlc-vpc.cn-hangzhou.aliyuncs.com"],
    )
    workspace: Text = Field(description="The number of the workspace.", examples=["'123456'"])
    login_file: LocalPath | None = Field(
        default=None,
        description="A file with access keys, as Alibaba Cloud's SDKs have it; else where these look: "
        "~/.alibabacloud/credentials, ~/.aliyun/config.json, the role of this machine.",
        examples=["~/.alibabacloud/lab"],
    )
    image: Text = Field(description="The image of trials.", examples=["team/pytorch:2.9"])
    instance: Name | None = Field(
        default=None, description="The kind of machine of the public resources.", examples=["ecs.gn6i-c4g1.xlarge"]
    )
    quota: Name | None = Field(
        default=None,
        description="The resource quota, else the public resources; a trial's `resources:` count there.",
        examples=["quota1ab2cd3"],
    )
    gpu_type: Name | None = Field(default=None, description="The kind of GPU, in a quota.", examples=["V100"])
    data_sources: list[DataSource] = Field(
        default_factory=list,
        description="What PAI-DLC mounts into each job, one of them the storage.",
        examples=["[{id: d-cn9dl0x3d1, mount_path: /mnt/nas}]"],
    )
    storage: SharedStorage = Field(
        description="A folder of NAS that a data source mounts into jobs, and this machine has mounted, too; code goes "
        "there.",
        examples=["{local_path: /mnt/nas, mount_path: /mnt/nas}"],
    )
    job_type: Literal["PyTorchJob", "TFJob"] = Field(
        default="PyTorchJob", description="The type of jobs.", examples=["TFJob"]
    )
    priority: int | None = Field(default=None, ge=1, le=9, description="The priority in a quota, 1 to 9.", examples=[5])
    shared_memory: Size | None = Field(
        default=None, description="The shared memory of a trial, in a quota.", examples=["4GB"]
    )
    python: Text = Field(default="python3", description="The interpreter in the image.", examples=["/opt/bin/python"])
    ca_file: LocalPath | None = Field(default=None, description="Certificates to trust.", examples=["~/ca.pem"])

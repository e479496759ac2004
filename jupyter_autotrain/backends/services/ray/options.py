"""Options of a profile for a Ray cluster. They name addresses and resources, never a secret."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field, model_validator

from jupyter_autotrain.backends.services.storage_options import ReusingOptions, SharedStorage
from jupyter_autotrain.header.document import UnfitError
from jupyter_autotrain.header.types import LocalPath, Name, RemotePath, Text

_OWN = frozenset({"working_dir", "py_modules", "container", "image_uri"})


def _runtime_env(value: object) -> object:
    if isinstance(value, dict) and (taken := sorted(_OWN & set(value))):
        raise UnfitError(f"expected no {taken[0]}: the trial's own package is sent in its place", "leave it out")
    return value


class RayOptions(ReusingOptions):
    """Options of the Ray backend."""

    header_keys: ClassVar[tuple[str, ...]] = ("resources", "labels", "gpu_type", "runtime_env")

    address: Text | None = Field(
        default=None,
        description="The dashboard of the head node; else http://127.0.0.1:8265.",
        examples=["http://head:8265"],
    )
    login_file: LocalPath | None = Field(
        default=None, description="The file with Ray's token; else ~/.ray/auth_token.", examples=["~/.ray/lab_token"]
    )
    ca_file: LocalPath | None = Field(
        default=None, description="Certificates to trust, of an address with https.", examples=["~/ca.pem"]
    )
    python: Text = Field(
        default="python3", description="The interpreter on the nodes.", examples=["/opt/venv/bin/python"]
    )
    workdir: RemotePath | None = Field(
        default=None, description="A folder on the nodes for what runs; else their /tmp.", examples=["/scratch/trials"]
    )
    storage: SharedStorage | None = Field(
        default=None,
        description="A folder that the nodes and this machine have mounted; `reuse` needs it.",
        examples=["{local_path: /mnt/lab, mount_path: /mnt/lab}"],
    )
    gpu_type: Name | None = Field(
        default=None, description="The kind of GPU, as Ray calls it (accelerator_type).", examples=["A100"]
    )
    resources: dict[str, float] = Field(
        default_factory=dict, description="Custom resources of each trial.", examples=["{fast_disk: 1}"]
    )
    labels: dict[str, str] = Field(
        default_factory=dict, description="Labels that the node must have.", examples=["{market-type: spot}"]
    )
    runtime_env: Annotated[dict[str, object], BeforeValidator(_runtime_env)] = Field(
        default_factory=dict,
        description="Ray's runtime_env besides the trial's code, such as pip or conda.",
        examples=["{pip: [einops]}"],
    )

    @model_validator(mode="after")
    def _has_storage(self) -> RayOptions:
        if self.reuse and self.storage is None:
            raise UnfitError("expected `storage:` with `reuse:`, in which trials wait", "name a folder that all have")
        return self

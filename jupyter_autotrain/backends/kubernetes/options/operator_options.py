"""Options of the types whose objects an operator of the cluster turns into pods."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from jupyter_autotrain.backends.kubernetes.options.kubernetes_options import KubernetesOptions
from jupyter_autotrain.header.document import resolve
from jupyter_autotrain.header.faults import UnfitError
from jupyter_autotrain.header.types import AS_INTEGER


def _none(value: object) -> object:
    if resolve(value) not in (0, False):
        raise UnfitError(
            "expected 0: an operator makes pods for one trial and ends them with it; with `type: kubernetes` in the "
            "profile, pods run trials one after another"
        )
    return 0


class OperatorOptions(KubernetesOptions):
    """Options of Kubernetes, as far as operators can have them."""

    reuse: Annotated[int, AS_INTEGER, BeforeValidator(_none)] = Field(
        default=0, description="0: an operator makes pods for each trial; `type: kubernetes` can reuse them."
    )

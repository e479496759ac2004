"""The program of a trial's pods, and its arguments: the same for all kinds of objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.environment import travelling
from jupyter_autotrain.agent.json import JsonObject, JsonValue, to_json
from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.backends import trial_content
from jupyter_autotrain.backends.kubernetes.objects import naming
from jupyter_autotrain.backends.kubernetes.objects import workload as defaults
from jupyter_autotrain.backends.kubernetes.objects.pod_parts import json_variable, unexpanded
from jupyter_autotrain.backends.kubernetes.objects.workload import CONFIG_MAPS, SECRETS, Workload, WorkloadRequest
from jupyter_autotrain.backends.kubernetes.storage import code_objects
from jupyter_autotrain.backends.kubernetes.workloads import manifests, pod_template, volumes
from jupyter_autotrain.backends.kubernetes.workloads.patching import Patched
from jupyter_autotrain.backends.kubernetes.workloads.plain_job import PooledJobWorkload
from jupyter_autotrain.backends.kubernetes.workloads.pod_template import PodProgram
from jupyter_autotrain.backends.kubernetes.workloads.volumes import with_volume_folders
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.spec import TrialSpec

_CODE_VOLUME = "autotrain-code"
_AGENT_VOLUME = "autotrain-agent"
_AGENT_SIZE = "16Mi"  # a tenth of it is used
_RUN_VOLUME = "autotrain-run"
_MOST_VARIABLE_BYTES = 64 << 10  # a kernel takes 128 KiB, and a reader of manifests less
_GRACE_S = 30


@dataclass(frozen=True, slots=True)
class TrialProgram:
    """A trial as its manifests are made from it.

    Attributes:
        trial: The trial.
        options: Of the profile and the header's section.
        workload: The kind of its object.
        home: The identity of the home.
        namespace: Where it runs.
        config_maps: The ConfigMap of each file in `places.CODE`.
        more: What stands in `trial.json` besides.
        more_volumes, more_mounts, more_variables: Of its pods besides, as in a manifest.
    """

    trial: TrialSpec
    options: JsonObject
    workload: Workload
    home: str
    namespace: str
    config_maps: Mapping[str, str]
    more: JsonObject = field(default_factory=dict)
    more_volumes: Sequence[JsonObject] = ()
    more_mounts: Sequence[JsonObject] = ()
    more_variables: Sequence[JsonObject] = ()

    @property
    def name(self) -> str:
        """The name of its object."""
        return self.workload.object_name(self.trial.job_id, self.home)

    @property
    def nodes(self) -> int:
        """Return how many pods it has."""
        return self.trial.resources.nodes

    @property
    def python(self) -> str:
        """The interpreter in its image."""
        return str(self.options.get("python") or defaults.PYTHON)

    @property
    def secret_names(self) -> tuple[str, ...]:
        """The variables whose values stand in its Secret."""
        may_be_several = self.nodes > 1 or self.workload.node_variables.count
        own = (wire.TOKEN_VARIABLE,) if may_be_several else ()
        return (*self.trial.secrets, *own)

    def content(self) -> JsonObject:
        """Return what stands in `trial.json`, but for what only a pod knows."""
        content = trial_content.begin(self.trial, self.trial.options)
        content["environment"] = travelling(self.trial.environment)
        return {**cast("JsonObject", content), **self.more}

    def manifests(self) -> manifests.Manifests:
        """Return its objects; the first is its own and owns the others."""
        template = self._template()
        request = WorkloadRequest(
            name=self.name,
            namespace=self.namespace,
            labels=self._labels(),
            annotations=cast("Mapping[str, str]", self.options.get("annotations") or {}),
            nodes=self.nodes,
            min_nodes=self._min_nodes(),
            workers_per_node=self.trial.resources.workers_per_node,
            launcher=self.trial.launcher,
            template=template.result,
            options=self.options,
            timeout_s=self.trial.timeout_s,
        )
        found = manifests.manifests(self.workload, request)
        if not template.replaced:
            return found
        return replace(found, notes=(f"`pod_patch` replaces {', '.join(template.replaced)}.", *found.notes))

    def _labels(self) -> Mapping[str, str]:
        given = cast("Mapping[str, str]", self.options.get("labels") or {})
        return {**given, **naming.labels_of(self.trial.job_id, self.home)}

    @property
    def metadata(self) -> JsonObject:
        """The labels and annotations of all its objects."""
        return pod_template.metadata(self.options, naming.labels_of(self.trial.job_id, self.home), {})

    def _min_nodes(self) -> int:
        """Return how many it needs: an elastic trial goes on while its first node does."""
        return 1 if self.trial.elastic else self.nodes

    def _template(self) -> Patched:
        own: list[JsonObject] = [
            code_objects.volume(_CODE_VOLUME, self.config_maps),
            {"name": _AGENT_VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": _AGENT_SIZE}},
            {"name": _RUN_VOLUME, "emptyDir": {}},
        ]
        mounts: list[JsonObject] = [
            {"name": _CODE_VOLUME, "mountPath": places.CODE, "readOnly": True},
            {"name": _AGENT_VOLUME, "mountPath": places.AGENT},
            {"name": _RUN_VOLUME, "mountPath": places.RUN},
        ]
        if self.more_mounts:  # below the trial directory, which the runtime would make for them as root
            mounts.append({"name": _RUN_VOLUME, "mountPath": places.TRIAL_DIRECTORY, "subPath": places.TRIAL})
        program = PodProgram(
            command=[unexpanded(self.python), "-I", "-S", "-u", f"{places.CODE}/{places.AGENT_ARCHIVE}"],
            env=self._variables(),
            secret=self.name if self.secret_names else "",
            secret_variables=self.secret_names,
            volumes=[*own, *self.more_volumes],
            mounts=[*mounts, *self.more_mounts],
            references=self.more_variables,
            grace_s=_GRACE_S,
        )
        done = pod_template.pod_template(self.trial, self.options, program, self._labels())
        return replace(done, result=with_volume_folders(done.result, volumes.STORAGE))

    def _variables(self) -> dict[str, str]:
        variables = self.workload.node_variables
        pod: JsonObject = {
            "nodes": self.nodes,
            "linger_s": self.options.get("linger", defaults.LINGER_S),
            "lingers": self.workload.deletes_pods_at_once,
            "rescales": self.workload.rescales and volumes.is_kept(self.options),
            "elastic": self.trial.elastic,
            "grace_s": _GRACE_S,
            "variables": cast("JsonObject", to_json(variables)),
        }
        own = {"PYTHONUNBUFFERED": "1", places.POD_VARIABLE: json_variable(pod)}
        text = self.trial_text()
        return own if self.is_long else {**own, places.TRIAL_VARIABLE: text}

    def trial_text(self) -> str:
        """`trial.json` as it is sent."""
        return json_variable(self.content())

    @property
    def is_long(self) -> bool:
        """Return whether `trial.json` is too long for a variable."""
        return len(self.trial_text().encode()) > _MOST_VARIABLE_BYTES

    def secret(self, values: Mapping[str, str]) -> JsonObject | None:
        """Return the Secret with the values of variables that no manifest may hold; None where there are none."""
        if not self.secret_names:
            return None
        metadata: JsonObject = {**self.metadata, "name": self.name, "namespace": self.namespace}
        data: dict[str, JsonValue] = {name: values[name] for name in self.secret_names if name in values}
        return {
            "apiVersion": "v1", "kind": SECRETS.kind, "metadata": metadata, "type": "Opaque", "stringData": data
        }  # fmt: skip

    def with_config_maps(self, config_maps: Mapping[str, str]) -> TrialProgram:
        """Return the same with these ConfigMaps."""
        return replace(self, config_maps=config_maps)

    def _owned_kinds(self) -> list[str]:
        """Return the kinds of the objects that are made with its own, and are deleted with it."""
        made = [str(one["kind"]) for one in self.manifests().objects[1:]]
        made += [SECRETS.kind] if self.secret_names else []
        made += [CONFIG_MAPS.kind] if self.is_long else []
        return sorted(set(made))

    def job_ref(self, backend: str) -> JobRef:
        """Return what the job is found again by.

        Args:
            backend: The name of the profile.
        """
        kind = self.workload.object_type
        data: JsonObject = {
            "name": self.name, "namespace": self.namespace, "kind": kind.kind, "version": kind.version,
            "nodes": self.nodes, "workers": self.trial.resources.workers_per_node, "elastic": self.trial.elastic,
            "python": self.python, "fetch_limit_bytes": self.trial.fetch_limit_bytes,
            "start_timeout_s": self.options.get("start_timeout", defaults.START_TIMEOUT_S),
            "pooled": isinstance(self.workload, PooledJobWorkload), "owns": self._owned_kinds(),
        }  # fmt: skip
        return JobRef(backend, self.trial.job_id, data)

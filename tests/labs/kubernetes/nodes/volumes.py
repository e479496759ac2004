"""The volumes of pods, as folders of the machine."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.labs.kubernetes.nodes import variables
from tests.labs.kubernetes.nodes.runtime.root import Mount
from tests.labs.kubernetes.nodes.variables import ConfigError
from tests.labs.kubernetes.objects.errors import ApiError
from tests.labs.kubernetes.objects.resources import PERSISTENT_VOLUME_CLAIMS, SECRETS
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore

_HOST_PATH_TESTS: Mapping[str, Callable[[Path], bool]] = {
    "Directory": Path.is_dir,
    "File": Path.is_file,
    "Socket": Path.is_socket,
    "": lambda _: True,
}


class PodVolumes:
    """The volumes of one pod.

    Args:
        store: Where ConfigMaps, Secrets and claims are.
        shared: The folder of claims and servers, of the whole cluster.
        folder: Of the pod on its node.
        memory: Of the pod in the node's memory; seen by the node alone.
    """

    def __init__(self, store: ObjectStore, shared: Path, folder: Path, memory: str) -> None:
        self._store = store
        self._shared = shared
        self._folder = folder
        self._memory = memory
        self._places: dict[str, str] = {}
        self._in_memory: set[str] = set()
        self._makers: Mapping[str, Callable[[Json, Json, Json], Path]] = {
            "emptyDir": lambda volume, _, __: self._own(volume, 0o777),
            "configMap": self._of_data,
            "secret": self._of_data,
            "downwardAPI": self._of_fields,
            "projected": self._projected,
            "hostPath": self._host_path,
            "persistentVolumeClaim": self._claim,
            "nfs": lambda _, pod, source: self._server(pod, "nfs", source["server"], source["path"]),
            "azureFile": self._azure_file,
        }

    def prepare(self, pod: Json) -> None:
        """Make all of them; those that are made stay.

        Raises:
            ConfigError: Something is not there.
        """
        for volume in pod["spec"].get("volumes", ()):
            name = volume["name"]
            if name in self._places:
                continue
            kind = next((key for key in volume if key != "name"), "emptyDir")
            if kind == "emptyDir" and (volume.get(kind) or {}).get("medium") == "Memory":
                self._in_memory.add(name)
                self._places[name] = f"{self._memory}/{name}"
                continue
            if kind not in self._makers:
                raise ConfigError(f'volume "{name}" : the double has no volumes of kind {kind}')
            try:
                self._places[name] = str(self._makers[kind](volume, pod, volume.get(kind) or {}))
            except ConfigError as error:
                raise ConfigError(f'volume "{name}" : {error}') from error

    def mounts(self, container: Json, environment: Mapping[str, str]) -> list[Mount]:
        """Return the mounts of a container."""
        return [self._mount(entry, environment) for entry in container.get("volumeMounts", ())]

    def _mount(self, entry: Json, environment: Mapping[str, str]) -> Mount:
        place = self._places[entry["name"]]
        inside = entry.get("subPath") or variables.expand(entry.get("subPathExpr", ""), environment)
        in_memory = entry["name"] in self._in_memory
        if inside:
            whole, place = place, f"{place}/{inside}"
            if not in_memory:
                _make_below(Path(whole), inside)
        return Mount(
            source=place, target=entry["mountPath"], read_only=entry.get("readOnly", False), made_by_node=in_memory
        )

    def empty_dirs(self, pod: Json) -> dict[str, Path]:
        """Return the folders of the volumes that are the pod's own, on disk."""
        names = [volume["name"] for volume in pod["spec"].get("volumes", ()) if "emptyDir" in volume]
        return {name: Path(self._places[name]) for name in names if name in self._places}

    def place(self, name: str) -> str:
        """Where a volume lies."""
        return self._places[name]

    def remove(self) -> None:
        """Remove what is the pod's own."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _own(self, volume: Json, mode: int = 0o755) -> Path:
        place = self._folder / str(volume["name"])
        place.mkdir(parents=True, exist_ok=True)
        place.chmod(mode)
        return place

    def _of_data(self, volume: Json, pod: Json, source: Json) -> Path:
        kind = "Secret" if "secret" in volume else "ConfigMap"
        return self._write(self._own(volume), self._selected(kind, pod, source), source.get("defaultMode", 0o644))

    def _selected(self, kind: str, pod: Json, source: Json) -> dict[str, tuple[bytes, int | None]]:
        data = variables.read_data(self._store, kind, pod["metadata"]["namespace"], source)
        if data is None:
            return {}
        if not source.get("items"):
            return {key: (value, None) for key, value in data.items()}
        missing = [item["key"] for item in source["items"] if item["key"] not in data]
        if missing and not source.get("optional"):
            name = source.get("name") or source.get("secretName")
            raise ConfigError(f"references non-existent {kind.lower()} key: {missing[0]} of {name}")
        items = [item for item in source["items"] if item["key"] in data]
        return {item["path"]: (data[item["key"]], item.get("mode")) for item in items}

    def _fields(self, pod: Json, source: Json) -> dict[str, tuple[bytes, int | None]]:
        found: dict[str, tuple[bytes, int | None]] = {}
        for item in source.get("items", ()):
            if "fieldRef" in item:
                text = variables.field(pod, item["fieldRef"]["fieldPath"])
            else:
                text = variables.resource_field(pod, {}, item["resourceFieldRef"])
            found[item["path"]] = (text.encode(), item.get("mode"))
        return found

    def _of_fields(self, volume: Json, pod: Json, source: Json) -> Path:
        return self._write(self._own(volume), self._fields(pod, source), source.get("defaultMode", 0o644))

    def _projected(self, volume: Json, pod: Json, source: Json) -> Path:
        place = self._own(volume)
        for part in source.get("sources", ()):
            files: dict[str, tuple[bytes, int | None]] = {}
            if "configMap" in part:
                files = self._selected("ConfigMap", pod, part["configMap"])
            elif "secret" in part:
                files = self._selected("Secret", pod, part["secret"])
            elif "downwardAPI" in part:
                files = self._fields(pod, part["downwardAPI"])
            self._write(place, files, source.get("defaultMode", 0o644))
        return place

    @staticmethod
    def _write(place: Path, files: Mapping[str, tuple[bytes, int | None]], mode: int) -> Path:
        for name, (data, own_mode) in files.items():
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(mode if own_mode is None else own_mode)
        return place

    @staticmethod
    def _host_path(_volume: Json, _pod: Json, source: Json) -> Path:
        path = Path(str(source["path"]))
        kind = source.get("type") or ""
        if kind == "DirectoryOrCreate":
            path.mkdir(parents=True, exist_ok=True)
        elif kind == "FileOrCreate":
            path.touch()
        elif not _HOST_PATH_TESTS.get(kind, Path.exists)(path):
            raise ConfigError(f"hostPath type check failed: {path} is not a {kind.lower()}")
        if not path.exists():
            path.mkdir(parents=True)
        return path

    def _claim(self, _volume: Json, pod: Json, source: Json) -> Path:
        namespace = pod["metadata"]["namespace"]
        name = source["claimName"]
        self._store.get(PERSISTENT_VOLUME_CLAIMS, namespace, name)
        return self._folder_of("claims", namespace, name)

    def _azure_file(self, _volume: Json, pod: Json, source: Json) -> Path:
        namespace = pod["metadata"]["namespace"]
        name = source["secretName"]
        try:
            secret = variables.data_of("Secret", self._store.get(SECRETS, namespace, name))
        except ApiError:
            raise ConfigError(f'secret "{name}" not found') from None
        missing = {"azurestorageaccountname", "azurestorageaccountkey"} - set(secret)
        if missing:
            raise ConfigError(f"Couldn't get secret {namespace}/{name}: {sorted(missing)[0]} is not there")
        return self._folder_of("azure", source["shareName"])

    def _server(self, _pod: Json, kind: str, server: str, path: str) -> Path:
        return self._folder_of(kind, server, path.strip("/"))

    def _folder_of(self, *parts: str) -> Path:
        place = self._shared.joinpath(*parts)
        place.mkdir(parents=True, exist_ok=True)
        place.chmod(0o777)
        return place


def _make_below(volume: Path, inside: str) -> None:
    """Make the folders of a `subPath` as the kubelet does: with the permissions of the volume's own folder."""
    mode = stat.S_IMODE(volume.stat().st_mode)
    folder = volume
    for name in Path(inside).parts:
        folder = folder / name
        if not folder.exists():
            folder.mkdir()
            folder.chmod(mode)

"""Archives on the server of the profile's `storage:`; pods fetch them.

```
archives/SHA256.tar                 an archive
experiments/HOME/EXPERIMENT/SHA256  an empty object of a bucket: the experiment uses that archive
```

A web server lists nothing, so what a home has there cannot be told from what others have.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.objects.remote_files import RemoteFiles
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.backends.transfer.folders import FolderManifest, TarStream
from jupyter_autotrain.errors import BackendError

_MOST_S3_BYTES = 5 << 30  # of one PUT; Amazon S3 API reference, PutObject
_EXPERIMENTS = "experiments/"
_NOTHING = hashlib.sha256(b"").hexdigest()


class RemoteStorage:
    """A bucket of S3, or a folder of a web server.

    Args:
        place: `storage:` of the profile, as `RemoteFiles` takes it.
        variables: Gives the credentials, by the names of their variables.
    """

    def __init__(self, place: JsonObject, variables: Callable[[], Mapping[str, str]]) -> None:
        self._place = place
        self._variables = variables
        self._noted: set[str] = set()
        self._archives: dict[str, TarStream] = {}

    @property
    def _is_bucket(self) -> bool:
        return "s3" in self._place

    def _files(self) -> RemoteFiles:
        return RemoteFiles(self._place, self._variables())

    def entry(self, folder: FolderManifest) -> JsonObject:
        """Return the digest of the tar file, the place, and the name of the file there."""
        sha256 = self._archive(folder).sha256
        return {"sha256": sha256, "remote": self._place, "file": _file_name(sha256)}

    def _archive(self, folder: FolderManifest) -> TarStream:
        """Return a folder as a tar file; its digest is made once."""
        return self._archives.setdefault(folder.digest, TarStream(folder))

    def send(self, folder: FolderManifest, user: str) -> None:
        """Send it by PUT, unless a file of this name and size is there.

        Raises:
            BackendError: It is too big for S3.
            DataError: The server does not take it.
        """
        stream = self._archive(folder)
        if self._is_bucket and stream.size_bytes > _MOST_S3_BYTES:
            raise BackendError(
                f"What is to be sent to the bucket of `storage:` has {format_bytes(stream.size_bytes)}.",
                f"S3 takes {format_bytes(_MOST_S3_BYTES)} in one piece.",
                "Name several smaller folders in `data:`, data that is there already by `url:`, or a volume as "
                "`storage:`, such as `{pvc: NAME}`.",
            )
        files = self._files()
        self._note(files, f"{_EXPERIMENTS}{user}/{stream.sha256}")
        name = _file_name(stream.sha256)
        if not files.has(name, stream.size_bytes):
            files.put(name, stream.blocks, stream.size_bytes, stream.sha256)

    def _note(self, files: RemoteFiles, name: str) -> None:
        """Note who uses an archive, before it is looked for."""
        if self._is_bucket and name not in self._noted:
            files.put(name, list, 0, _NOTHING)
            self._noted.add(name)

    def experiments(self, home: str) -> Mapping[str, int]:
        """Return those that have noted what they use, which has no bytes; none on a web server.

        Raises:
            DataError: The server does not list them.
        """
        if not self._is_bucket:
            return {}
        names = self._files().names(f"{_EXPERIMENTS}{home}/")
        return dict.fromkeys(sorted({name.split("/")[2] for name in names}), 0)

    def remove(self, home: str, experiments: Sequence[str]) -> None:
        """Remove their notes, and the archives that are in no note any more.

        Raises:
            DataError: The server does not remove them.
        """
        if not self._is_bucket:
            return
        files = self._files()
        own = [name for one in experiments for name in files.names(f"{_EXPERIMENTS}{home}/{one}/")]
        for name in own:
            files.delete(name)
        used = set(map(_archive_of, files.names(_EXPERIMENTS)))
        for sha256 in sorted(set(map(_archive_of, own)) - used):
            files.delete(_file_name(sha256))


def _file_name(sha256: str) -> str:
    return f"archives/{sha256}.tar"


def _archive_of(note: str) -> str:
    return note.rpartition("/")[2]

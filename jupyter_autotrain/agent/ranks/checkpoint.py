"""`checkpoint`, the state that a trial saves so that its next attempt can go on."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterator

from jupyter_autotrain.agent import durable, files, wire

_NAME = re.compile(r"step-(\d+)\.pkl")
_RANK = re.compile(r"rank-\d+")
_KEEP = 2


class Checkpoint:
    """The saved states of a trial.

    Args:
        directory: The trial's `checkpoints` folder.
        previous: The same folder of the attempt before, or "".
        note: Tells the user of trouble: level, text.
        rank: That of the worker. Of several, each saves into a folder of its own; `path` is shared by all.
    """

    def __init__(self, directory: str, previous: str, note: Callable[[str, str], None], rank: int = 0) -> None:
        self.path = directory
        self._own = _of_rank(directory, rank)
        searched = [self._own, _of_rank(previous, rank), directory, previous]
        self._searched = list(dict.fromkeys(searched))  # for rank 0 the first two are the last two
        self._note = note
        self._saved = -1
        self._inherited: list[str] = []
        if previous and os.path.isdir(previous):
            with _locked(directory):
                self._inherit(previous)
                self._inherit_saved(_of_rank(previous, rank))

    def _inherit(self, previous: str) -> None:
        """Copy the files that the attempt before kept by itself in `checkpoint.path`, once.

        Our own files are left out, as `load` finds them there.
        """
        for name in os.listdir(previous):
            there = f"{self.path}/{name}"
            if _is_ours(name) or os.path.lexists(there):
                continue
            try:
                self._copy(previous, name, there)
            except OSError as error:
                self._note("warning", f"checkpoint {name} of the attempt before is left out: {error.strerror}")

    def _inherit_saved(self, previous: str) -> None:
        """Have the files here, too, that `save` made before.

        With other files here the attempt after this one looks no further.
        """
        try:
            if _files(self._own) or all(map(_is_ours, os.listdir(self.path))):
                return
            for path in filter(_is_regular, _files(previous)):
                os.makedirs(self._own, mode=0o700, exist_ok=True)
                name = os.path.basename(path)
                _link_or_copy(previous, name, f"{self._own}/{name}")
                self._inherited.append(f"{self._own}/{name}")
        except OSError as error:
            self._note(
                "warning", f"what the attempt before has saved is not kept for the one after this: {error.strerror}"
            )

    def _copy(self, previous: str, name: str, there: str) -> None:
        """Copy a file or a folder; of links only those that stay beside them, such as `last.ckpt`."""
        source = f"{previous}/{name}"
        if os.path.islink(source) and "/" not in os.readlink(source):
            os.symlink(os.readlink(source), there)
        elif os.path.isdir(source) and not os.path.islink(source):
            for left_out in files.copy_tree(previous, name, there):
                self._note("warning", f"checkpoint {name}/{left_out}; it is left out")
        else:
            files.copy_file(previous, name, there)

    def save(self, obj: object, step: int | None = None) -> str:
        """Save an object (pickle), atomically and durably; the two newest are kept.

        Args:
            obj: Anything that can be pickled, such as a dict of `state_dict()`s.
            step: How far the training is; counted up when not given.

        Returns:
            The file's path.
        """
        import pickle  # noqa: PLC0415 - only trials that save pay

        self._saved = self._saved + 1 if step is None else int(step)
        os.makedirs(self._own, mode=0o700, exist_ok=True)
        path = os.path.join(self._own, f"step-{self._saved:012d}.pkl")
        draft = f"{path}{wire.DRAFT}"
        with open(draft, "wb", opener=files.private_opener) as file:
            pickle.dump(obj, file, protocol=pickle.HIGHEST_PROTOCOL)
            file.flush()
            durable.sync(file.fileno())
        os.replace(draft, path)
        self._forget_inherited(path)
        for old in _files(self._own)[:-_KEEP]:
            os.unlink(old)
        return path

    def _forget_inherited(self, saved: str) -> None:
        """Remove inherited files, since those that this attempt saves count, also where it counts its steps anew."""
        for path in self._inherited:
            if path != saved:
                with contextlib.suppress(FileNotFoundError):  # the cell has removed it
                    os.unlink(path)
        self._inherited = []

    def load(self, default: object = None) -> object:
        """Return the newest saved object, of this attempt or the one before; `default` when there is none.

        With several workers each gets what it saved itself; one that saved nothing gets what rank 0 saved. A file that
        cannot be read is passed over for the one before it, with a note.
        """
        import pickle  # noqa: PLC0415 - only trials that load pay

        for directory in self._searched:
            for path in reversed(_files(directory)):
                try:
                    with files.open_regular(directory, os.path.basename(path)) as file:
                        found: object = pickle.load(file)  # noqa: S301 - this trial's own attempt wrote it
                except Exception as error:  # noqa: BLE001 - unpickling may raise anything; an older file may be good
                    self._note("warning", f"checkpoint {os.path.basename(path)} cannot be read: {error}")
                    continue
                self._saved = max(self._saved, _step(path))
                return found
        return default


def _is_ours(name: str) -> bool:
    return bool(_NAME.fullmatch(name) or _RANK.fullmatch(name)) or name.endswith(wire.DRAFT)


def _is_regular(path: str) -> bool:
    return stat.S_ISREG(os.lstat(path).st_mode)


def _link_or_copy(directory: str, name: str, target: str) -> None:
    """Have a file at another place, too, whole or not at all; the file is never changed in place."""
    try:
        os.link(f"{directory}/{name}", target)
    except OSError:  # another file system, or one without links
        files.copy_file(directory, name, f"{target}{wire.DRAFT}")
        os.replace(f"{target}{wire.DRAFT}", target)


def _of_rank(directory: str, rank: int) -> str:
    return f"{directory}/rank-{rank}" if rank and directory else directory


@contextlib.contextmanager
def _locked(directory: str) -> Iterator[None]:
    """Keep the other workers of the trial out until the block is done, where the disk can do that."""
    import fcntl  # noqa: PLC0415 - only trials that resume pay

    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _step(path: str) -> int:
    match = _NAME.search(path)
    return int(match[1]) if match else -1


def _files(directory: str) -> list[str]:
    """Return the saved files, oldest first."""
    try:
        names = os.listdir(directory) if directory else []
    except OSError:
        return []
    return sorted(f"{directory}/{name}" for name in names if _NAME.fullmatch(name))

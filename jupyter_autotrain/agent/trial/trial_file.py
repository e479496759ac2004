"""`trial.json`: the instructions for the processes of a trial on one node.

The manager's side begins it (`backends.trial_content`); the node completes it with its own paths, devices and
variables; the supervisor and every rank read it. It lies in the trial directory while the trial runs, and a cell may
write over it: who reads it later than the supervisor checks the fields it uses (`fields`).
"""

from __future__ import annotations

import json

from jupyter_autotrain.agent import wire

TYPE_CHECKING = False  # every trial imports this module, so `typing` itself is left out
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypedDict

    class Layout(TypedDict, total=False):
        """The layout by which the nodes of a trial find each other.

        Attributes:
            node_rank: Of this node.
            nodes: How many there are.
            first: The address and the port where the supervisor of node 0 listens for the others.
            address: The address of this node, as the others reach it; "" as its connection to them shows it.
            wait_s: How long the nodes may take to meet.
            has_one_user: Whether it is the same user on all nodes.
            endpoints: Of each node its address and free ports, in the order of their ranks; once they have met.
        """

        node_rank: int
        nodes: int
        first: Sequence[object]
        address: str
        wait_s: int
        has_one_user: bool
        endpoints: Sequence[object]

    class TrialFile(TypedDict, total=False):
        """The content of the file.

        The fields of `core.spec.TrialSpec`, as JSON, and those of the manager's side (`workers`, `gpus`, `options`,
        `lease_s`, `wire`) come first; then those of the node.

        Attributes:
            workers: How many ranks run on this node.
            gpus: The ids of the accelerators that the trial has on this node.
            lease_s: After how many seconds without contact to a manager it ends.
            wire: Version of the trial directory's format.
            directory: The trial directory.
            bundle: The folder with the experiment's code.
            python: The interpreter of the node.
            environments: The folder of virtual environments.
            data_folder: The cache of what `data:` fetches.
            data_limit_bytes: How much it may hold; None: as much as is the default.
            resume_from: The folder of the checkpoints that it goes on from; "" from the beginning.
            contact: The file whose time says when a manager has been in contact.
            layout: On several nodes.
            archives, on_volume, resumed: What a pod fetches before the trial begins (`pods.preparing`).
        """

        experiment_id: str
        number: int
        attempt: int
        bundle_sha256: str
        script: str
        params: Mapping[str, object]
        seed: int | None
        objective: str
        resources: Mapping[str, object]
        launcher: str
        elastic: bool
        timeout_s: float | None
        environment: Mapping[str, str]
        env: Mapping[str, str]
        python_environment: Mapping[str, object]
        python_packages: Sequence[Mapping[str, object]]
        python_version: str
        secrets: Sequence[str]
        returns: Sequence[str]
        autolog: bool
        data: Sequence[Mapping[str, object]]
        fetch_limit_bytes: int
        resume_attempt: int | None
        resume_note: str
        options: Mapping[str, object]
        workers: int
        gpus: Sequence[str]
        lease_s: float | None
        wire: int
        directory: str
        bundle: str
        python: str
        environments: str
        data_folder: str
        data_limit_bytes: int | None
        resume_from: str
        contact: str
        layout: Layout
        archives: Sequence[Mapping[str, object]]
        on_volume: bool
        resumed: Sequence[str]

else:
    Layout = TrialFile = dict  # all that there is of them at run time


def of_json(value: object) -> TrialFile:
    """Return a JSON object as the trial file that it was sent as.

    Raises:
        ValueError: It is no object.
    """
    if not isinstance(value, dict):
        raise ValueError(f"trial.json is a {type(value).__name__}; an object was expected")  # noqa: TRY004 - as JSON that is wrong
    trial: TrialFile = value  # type: ignore[assignment]  # the manager's side has made it
    return trial


def read(directory: str) -> TrialFile:
    """Return the content of the file in a trial directory.

    Raises:
        OSError, ValueError: It cannot be read.
    """
    with open(f"{directory}/{wire.TRIAL_FILE}", encoding="utf-8") as file:
        return of_json(json.load(file))


def write(trial: TrialFile, *, sync: bool = False) -> None:
    """Write the file into the trial's own directory, as a whole.

    Args:
        trial: What it says; complete.
        sync: Wait until it lies on the disk.

    Raises:
        OSError: It cannot be written.
    """
    wire.write_atomically(f"{trial['directory']}/{wire.TRIAL_FILE}", json.dumps(trial).encode(), sync=sync)

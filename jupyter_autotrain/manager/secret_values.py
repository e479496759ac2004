"""The values of secrets, in the manager's memory only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.spec import ExperimentSpec


class SecretValues:
    """What clients have sent, by experiment."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, str]] = {}

    def receive(self, messages: Sequence[JsonObject]) -> None:
        """Take the values from messages such as `{"secrets": {experiment id: {NAME: value}}}`."""
        for message in messages:
            secrets = message.get("secrets")
            if isinstance(secrets, Mapping):
                self._add(secrets)

    def _add(self, secrets: JsonObject) -> None:
        for experiment_id, values in secrets.items():
            if isinstance(values, Mapping):
                known = self._values.setdefault(experiment_id, {})
                known.update({name: str(value) for name, value in values.items()})

    def of(self, experiment_id: str) -> Mapping[str, str]:
        """The known values of an experiment, by name."""
        return self._values.get(experiment_id, {})

    def forget(self, experiment_id: str) -> None:
        """Drop the values of an experiment that has ended."""
        self._values.pop(experiment_id, None)

    def block_reason(self, experiment_id: str, spec: ExperimentSpec) -> str:
        """What blocks the trials of an experiment whose values are not all known; "" when they are."""
        known = self.of(experiment_id)
        missing = [name for name in spec.secrets if name not in known]
        if not missing:
            return ""
        return (
            f"waits for its secret {', '.join(missing)}: secrets are kept in memory only, and this manager does not "
            "have it; it goes on when the experiment is attached where that variable is set"
        )

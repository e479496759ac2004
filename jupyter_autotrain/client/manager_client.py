"""The client's side of the manager: starts it, passes secrets to it, sends requests and waits for the answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from jupyter_autotrain import manager
from jupyter_autotrain.agent.json import JsonObject, to_json
from jupyter_autotrain.client.waiting import wait_until
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.errors import AutotrainError, ManagerError
from jupyter_autotrain.store import Store


def secret_values(spec: ExperimentSpec, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the secrets that a spec names, and of those of its hooks' variables that are set.

    Raises:
        AutotrainError: Some are not set; names all of them.
    """
    missing = [name for name in spec.secrets if name not in variables]
    if missing:
        raise AutotrainError(
            f"These secrets are not set: {', '.join(missing)}.",
            "Each name under 'secrets:' must be an environment variable where you submit.",
            f"Set it first, for example: import getpass, os; os.environ['{missing[0]}'] = getpass.getpass()",
        )
    return {name: variables[name] for name in spec.secret_names if name in variables}


def ensure_manager(home: Home, experiment_id: str, values: Mapping[str, str]) -> None:
    """Make sure that a manager runs and has the values of an experiment's secrets; they go nowhere else.

    Raises:
        ManagerError: It cannot be started, or does not take the secrets.
    """
    manager.ensure(home)
    if values and not manager.notify(home, {"secrets": {experiment_id: dict(values)}}):
        raise ManagerError(
            "The values of the secrets cannot be sent to the manager.",
            "Its Unix socket in the home folder was expected to answer.",
            "Run '%autotrain doctor', then submit again.",
        )


def prepare(home: Home, profile: Profile) -> None:
    """Tell the manager, where one runs, that trials are about to come for a backend: it connects already."""
    with suppress(ManagerError):  # the profile is too large for a message; the experiment names it again
        manager.notify(home, {"prepare": to_json(profile)})


def notify(home: Home) -> None:
    """Wake the manager: something in the store is new."""
    if not manager.notify(home):
        manager.ensure(home)


def post(store: Store, home: Home, request: tuple[str, str, JsonObject]) -> int:
    """Keep a request (kind, experiment id, arguments) for the manager, and make sure that there is one; gives its id.

    Raises:
        StoreError: It could not be kept.
        ManagerError: It is kept, and no manager can be started to answer it.
    """
    with suppress(ManagerError):  # first: one of an older version would answer what it does not know
        manager.ensure(home)
    request_id = store.add_request(*request, time.time())
    notify(home)
    return request_id


def ask(store: Store, home: Home, request: tuple[str, str, JsonObject], timeout_s: float) -> JsonObject:
    """Send a request (kind, experiment id, arguments) to the manager and wait for its answer.

    Raises:
        ManagerError: It refused, or did not answer in time; the request stays and is answered later.
    """
    manager.ensure(home)
    request_id = store.add_request(*request, time.time())
    notify(home)
    answered = wait_until(
        store, lambda: store.request(request_id).done, timeout_s=timeout_s, nudge=lambda: manager.ensure(home)
    )
    if not answered:
        raise ManagerError(
            f"The manager has not answered the request to {request[0]} within {timeout_s:g} s.",
            "The request is kept and will be answered.",
            "Try again later, or run '%autotrain doctor'.",
        )
    result = store.request(request_id).result
    if error := result.get("error"):
        raise ManagerError(f"The manager could not {request[0]}: {error}", "", "Ask '%autotrain why' for the reasons.")
    return result


_EVERY_S: Final = 2.0
_MOST_S: Final = 60.0  # between two tries where it cannot be started


class ManagerGuard:
    """Looks after the manager of a home, for one reader.

    Args:
        home: The home; none is made.
        is_needed: Whether something is unfinished; asked only where there is no manager.
        start: Starts a manager.
    """

    def __init__(self, home: Home, is_needed: Callable[[], bool], start: Callable[[], object]) -> None:
        self._home = home
        self._is_needed = is_needed
        self._start = start
        self._lock = threading.Lock()  # held while a manager is started
        self._pause_s = _EVERY_S
        self._next_s = time.monotonic() + _EVERY_S

    def look(self) -> None:
        """Start a manager, in the background, where one is missing; looks at most every two seconds."""
        if time.monotonic() < self._next_s or not self._lock.acquire(blocking=False):
            return
        self._next_s = time.monotonic() + self._pause_s
        try:
            is_missing = manager.is_missing(self._home) and self._is_needed()
        except BaseException:
            self._lock.release()
            raise
        if is_missing:
            threading.Thread(target=self._bring_back, name="autotrain-manager", daemon=True).start()
        else:
            self._pause_s = _EVERY_S
            self._lock.release()

    def _bring_back(self) -> None:
        try:
            with suppress(AutotrainError):  # reading goes on; the next command says why
                self._start()
            self._pause_s = min(2 * self._pause_s, _MOST_S)
        finally:
            self._lock.release()

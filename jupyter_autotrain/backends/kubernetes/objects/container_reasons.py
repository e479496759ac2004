"""Why a container does not start, or how it ended. Pure."""

from __future__ import annotations

import re

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes.objects.fields import items, number, part, text

_MOST_CHARACTERS = 300  # of a message that is passed on
_NO_IMAGE = ("not found", "manifest unknown", "does not exist", "name unknown")
_REFUSED = ("unauthorized", "denied", "forbidden", "401", "403", "authentication required")
_UNREACHABLE = ("no such host", "dial tcp", "timeout", "timed out", "connection refused", "tls:", "x509")
_PULL = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"})
_CANNOT_RUN = frozenset({"ContainerCannotRun", "StartError", "RunContainerError", "CreateContainerError"})
_ORDINARY = frozenset({"ContainerCreating", "PodInitializing", ""})
_INVALID_IMAGE = "InvalidImageName"
_COMMAND = re.compile(r'exec: "([^"]+)"')
_WORDS = re.compile(r"(?:^|: )(?:rpc error: )?(?:code = \w+ )?(?:desc = )?")


def waiting(pod: JsonObject) -> str:
    """Return what keeps a container of a pod from starting; "" for nothing unusual."""
    for status in statuses(pod):
        waits = part(status, "state", "waiting")
        reason = text(waits, "reason")
        message = text(waits, "message")
        if reason in _PULL:
            return image_pull(text(status, "image") or _image(pod, text(status, "name")), message)
        if reason in _CANNOT_RUN:
            return f"waits: {cannot_run(message)}"
        if reason not in _ORDINARY:
            return _other(reason, message, status)
    return ""


def is_lasting(pod: JsonObject) -> bool:
    """Return whether a container can never start, since the pod itself is wrong."""
    return any(text(status, "state", "waiting", "reason") == _INVALID_IMAGE for status in statuses(pod))


def statuses(pod: JsonObject) -> list[JsonObject]:
    """Return those of the init containers and of the others."""
    return [*items(pod, "status", "initContainerStatuses"), *items(pod, "status", "containerStatuses")]


def image_pull(image: str, message: str) -> str:
    """Return why an image cannot be had, with the registry's words."""
    told = message.lower()
    if any(word in told for word in _UNREACHABLE):
        why = "its registry does not answer the node"
    elif any(word in told for word in _REFUSED):
        why = "its registry refuses: name a secret with the login in `image_pull_secrets`, or correct `image`"
    elif any(word in told for word in _NO_IMAGE):
        why = "there is no such image: correct `image`"
    else:
        why = "it cannot be pulled"
    return f"waits for its image {image}: {why}.{_words_of_registry(message)}".rstrip(".")


def _words_of_registry(message: str) -> str:
    """Return a registry's words, as a sentence; the node repeats them behind "Back-off pulling image"."""
    if not message.lower().startswith("back-off"):
        return f" The registry says: {short(message)}" if message else ""
    words = message.partition(": ")[2]
    return f" The registry says: {short(words)}" if ": " in message else ""


def cannot_run(message: str) -> str:
    """Return why a container's program cannot be started, and what to do."""
    command = _COMMAND.search(message)
    told = message.lower()
    if command is not None and ("not found" in told or "no such file" in told):
        return (
            f"the image has no {command[1]}: name the interpreter of the image by `python:`, or another `image:` "
            "with a Python of 3.9 or later"
        )
    if command is not None and "permission denied" in told:
        return f"{command[1]} of the image may not be executed by the container's user; see `security_context`"
    return f"its container cannot run: {short(message) or 'the node gives no reason'}"


def out_of_memory(pod: JsonObject, name: str) -> str:
    """Tell that a container was killed at its memory limit."""
    limit = ""
    for container in items(pod, "spec", "containers"):
        if text(container, "name") == name:
            limit = str(part(container, "resources", "limits").get("memory") or "")
    allowed = f"its limit of {limit}" if limit else "what its node has"
    return (
        f"Out of memory: the trial used more than {allowed}. Lower the batch size, the model size or the number of "
        "loader processes, or raise `resources: {memory: ...}`."
    )


def exit_text(name: str, ended: JsonObject) -> str:
    """Return how a container ended, where nobody knows more than its exit code."""
    code = number(ended, "exitCode")
    number_of_signal = number(ended, "signal")
    told = short(text(ended, "message"))
    if number_of_signal or code > 128:
        how = f"was ended by signal {number_of_signal or code - 128}"
    elif code == 127:
        how = "exited with code 127: its command was not found in the image"
    elif code == 126:
        how = "exited with code 126: its command may not be executed"
    else:
        how = f"exited with code {code}"
    return f"The container {name} {how}{f': {told}' if told else ''}."


def short(message: str) -> str:
    """Return a message on one line, cut where it is too long for a view."""
    plain = " ".join(message.split())
    return plain if len(plain) <= _MOST_CHARACTERS else f"{plain[: _MOST_CHARACTERS - 1]}…"


def _other(reason: str, message: str, status: JsonObject) -> str:
    told = short(message)
    name = text(status, "name")
    if reason == "CreateContainerConfigError":
        hint = "it was deleted, or a name in the profile is wrong" if "not found" in message else "correct the profile"
        return f"waits for what its container {name} needs: {told} ({hint})"
    if reason == _INVALID_IMAGE:
        return f"never starts: {text(status, 'image') or 'its image'} is not the name of an image; correct `image`"
    if reason == "ErrImageNeverPull":
        return f"waits for its image {text(status, 'image')}: its node has none, and `image_pull_policy` is Never"
    if reason == "CrashLoopBackOff":
        last = part(status, "lastState", "terminated")
        how = f" It {exit_text(name, last)[len('The container ') + len(name) + 1 :]}" if last else ""
        return f"waits: its container {name} ends again and again.{how}".rstrip(".")
    return f"waits: {reason}{f' ({told})' if told else ''}"


def _image(pod: JsonObject, name: str) -> str:
    for container in [*items(pod, "spec", "initContainers"), *items(pod, "spec", "containers")]:
        if text(container, "name") == name:
            return text(container, "image")
    return ""


def running_init_container(pod: JsonObject) -> str:
    """Return which init container a pod waits for; "" for none."""
    for status in items(pod, "status", "initContainerStatuses"):
        if "running" in part(status, "state"):
            return f"waits for its init container {text(status, 'name')}, which runs on {text(pod, 'spec', 'nodeName')}"
    return ""

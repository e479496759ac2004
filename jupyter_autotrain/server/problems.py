"""The answer to a request that fails: problem JSON (RFC 9457) with the three clauses of our errors."""

from __future__ import annotations

from http import HTTPStatus

from pydantic import ValidationError
from tornado.web import HTTPError

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.core.text_format import cut
from jupyter_autotrain.errors import AutotrainError, HeaderError, ManagerError, StoreError, UnknownExperimentError

CONTENT_TYPE = "application/problem+json"
_STATUS: tuple[tuple[type[AutotrainError], HTTPStatus], ...] = (
    (UnknownExperimentError, HTTPStatus.NOT_FOUND),
    (HeaderError, HTTPStatus.CONFLICT),
    (ManagerError, HTTPStatus.SERVICE_UNAVAILABLE),
    (StoreError, HTTPStatus.INTERNAL_SERVER_ERROR),
    (AutotrainError, HTTPStatus.CONFLICT),
)
_MOST_FAULTS = 5


class ProblemError(Exception):
    """A failure with its status.

    Args:
        status: The HTTP status.
        error: What was found, what was expected, what to do next.
    """

    def __init__(self, status: HTTPStatus, error: AutotrainError) -> None:
        super().__init__(str(error))
        self.status = status
        self.error = error


def problem(status: HTTPStatus, found: str, expected: str = "", action: str = "") -> ProblemError:
    """Return a failure made from its status and clauses."""
    return ProblemError(status, AutotrainError(found, expected, action))


def not_found(what: str, expected: str, action: str = "Load the list again.") -> ProblemError:
    """Return the failure for something that the path names and that is not there."""
    return problem(HTTPStatus.NOT_FOUND, f"There is no {what}.", expected, action)


def of_exception(error: BaseException | None, status_code: int) -> ProblemError:
    """Return the failure for any exception of a handler.

    The client is not told of an unexpected one; the server's log has it.
    """
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, ValidationError):
        return _of_validation(error)
    if isinstance(error, AutotrainError):
        status = next(status for kind, status in _STATUS if isinstance(error, kind))
        return ProblemError(status, error)
    status = HTTPStatus(status_code)
    if isinstance(error, HTTPError):
        return problem(status, error.log_message or status.phrase, _EXPECTED.get(status, ""), _ACTIONS.get(status, ""))
    return problem(status, f"{status.phrase}.", "An answer was expected.", "The log of the Jupyter server has more.")


def problem_json(failure: ProblemError) -> JsonObject:
    """Return the members of the answer; its `detail` is what was found."""
    return {
        "type": "about:blank",
        "title": failure.status.phrase,
        "status": int(failure.status),
        "detail": failure.error.found,
        "expected": failure.error.expected,
        "action": failure.error.action,
    }


def _of_validation(error: ValidationError) -> ProblemError:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    texts = [f"{'.'.join(map(str, fault['loc'])) or 'the request'}: {fault['msg']}" for fault in faults[:_MOST_FAULTS]]
    more = f" and {len(faults) - _MOST_FAULTS} more" if len(faults) > _MOST_FAULTS else ""
    found = f"{cut('; '.join(texts), 1000)}{more}."
    return problem(HTTPStatus.BAD_REQUEST, found, "Parameters as openapi.json describes them.", "Correct the request.")


_EXPECTED = {
    HTTPStatus.FORBIDDEN: "A user of this Jupyter server with the right to do that, and the page's own XSRF token.",
    HTTPStatus.METHOD_NOT_ALLOWED: "A method that openapi.json names for this path.",
    HTTPStatus.NOT_FOUND: "A path of openapi.json.",
}
_ACTIONS = {HTTPStatus.FORBIDDEN: "Log in to the Jupyter server, and load the page again."}

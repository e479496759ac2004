"""The Jupyter server's extension: a REST API over the store and a socket of changes, with no kernel running.

`extension` → `handler` (who asks, what) → the operations (`experiments`, `trials`, `actions`, `backends`) → views.
`endpoint` is what an operation is, `openapi` describes them, `change_feed` and `changes_socket` tell of changes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp


def _load_jupyter_server_extension(app: ServerApp) -> None:
    from jupyter_autotrain.server.extension import load  # noqa: PLC0415 - only a Jupyter server has what it needs

    load(app)

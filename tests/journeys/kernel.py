"""A kernel that runs a notebook file, as JupyterLab starts it."""

from __future__ import annotations

import os

from jupyter_client import KernelManager

DEADLINE_S = 600


class Kernel:
    """A kernel process of a notebook, with the extension loaded."""

    def __init__(self, home, notebook):
        self.manager = KernelManager(kernel_name="python3")
        self.env = {
            **os.environ,
            "JUPYTER_AUTOTRAIN_HOME": str(home.root),
            "JPY_SESSION_NAME": str(notebook),
            "IPYTHONDIR": str(notebook.parent / "ipython"),
        }
        self.manager.start_kernel(env=self.env, cwd=str(notebook.parent))
        self.connect()

    def connect(self):
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=DEADLINE_S)
        self.run("%load_ext jupyter_autotrain")

    def restart(self):
        self.client.stop_channels()
        self.manager.restart_kernel(now=True)
        self.connect()

    def run(self, code, answer=None):
        shown = []
        self.client.execute_interactive(
            code,
            allow_stdin=answer is not None,
            stdin_hook=lambda question: self.client.input(answer),
            output_hook=lambda message: shown.append(text_of(message)),
            timeout=DEADLINE_S,
        )
        return "".join(shown)

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def text_of(message):
    content = message["content"]
    if message["msg_type"] == "stream":
        return content["text"]
    if message["msg_type"] == "error":
        return "\n".join(content["traceback"])
    return str(content.get("data", {}).get("text/plain", ""))

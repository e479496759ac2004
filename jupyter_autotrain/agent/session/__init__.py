"""The program of a session: an interpreter that goes on between cells, at the place of its trial.

Its script is one call of `serve`. Messages are those of Jupyter's protocol: requests come as files of the trial
directory, and what the kernel says leaves as lines of one stream there, so that a session needs no port and every place
that can run a trial can hold one.
"""

from jupyter_autotrain.agent.session.program import serve

__all__ = ["serve"]

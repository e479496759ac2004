"""`plan` over the whole space, also of what is exported only: the oracles are about all of it."""

from functools import partial

from jupyter_autotrain.parallel import api

plan = partial(api.plan, execute=False)

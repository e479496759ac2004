"""The first process of a container, started by the image's interpreter: see `environments.container_main`."""

import os
import sys

if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from jupyter_autotrain.agent.environments.container_main import main

    main(*sys.argv[1:4])

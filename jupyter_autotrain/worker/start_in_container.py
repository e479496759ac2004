"""Started by the image's interpreter as the first process of a container: see `environments.container_main`."""

import os
import sys

if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from jupyter_autotrain.worker.environments.container_main import main

    main(*sys.argv[1:4])

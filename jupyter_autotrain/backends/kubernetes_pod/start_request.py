"""Started in a pod by `exec`: `python -I -S start_request.py NAME ARGUMENTS`. Thin, as `start_supervisor`."""

import os
import sys

if __name__ == "__main__":
    here = os.path.abspath(__file__)
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(here)))))
    from jupyter_autotrain.backends.kubernetes_pod.requests import main

    main(sys.argv[1:])

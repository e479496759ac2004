"""A program that `exec` starts in a pod: `python -I -S start_request.py`. Thin, as `start_supervisor`."""

import os
import sys

if __name__ == "__main__":
    here = os.path.abspath(__file__)
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(here)))))
    from jupyter_autotrain.agent.pods.requests import main

    main()

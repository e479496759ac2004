"""Started in a pod, once the archive is unpacked: `python -I -S start_pod.py`. Thin, as `start_supervisor`."""

import os
import sys

if __name__ == "__main__":
    here = os.path.abspath(__file__)
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(here)))))
    from jupyter_autotrain.backends.kubernetes_pod.program import main

    main()

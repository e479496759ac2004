"""Started in a pod, once the archive is unpacked: `python -I -S start_pod.py`. Thin, as `start_supervisor`."""

import os
import signal
import sys

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # until the pod has its own; else it would be ignored
    here = os.path.abspath(__file__)
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(here)))))
    from jupyter_autotrain.backends.kubernetes_pod.program import main

    main()

"""Started by path: `python -I -S start_supervisor.py TRIAL_DIR`. Thin, so that the rest comes from compiled files."""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from jupyter_autotrain.worker.supervisor_main import main

    main(sys.argv[1])

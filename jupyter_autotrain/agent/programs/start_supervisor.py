"""A program started by path: `python -I -S start_supervisor.py TRIAL_DIR`. Thin: the rest comes from compiled files."""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))
    from jupyter_autotrain.agent.supervisor.supervisor_main import main

    main(sys.argv[1])

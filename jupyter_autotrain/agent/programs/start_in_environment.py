"""The supervisor's program: `python -I -S start_in_environment.py TRIAL_DIR ROLE PYTHON ARGUMENT...`."""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))
    from jupyter_autotrain.agent.environments.starting import main
    from jupyter_autotrain.agent.launchers import mpi

    main(sys.argv[1], sys.argv[2], sys.argv[3:], mpi.command_in)

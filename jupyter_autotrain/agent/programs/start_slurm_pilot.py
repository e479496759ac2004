"""The program of a Slurm pilot job: `python -I -S start_slurm_pilot.py PILOT_FOLDER IDLE_S LIMIT_S`. Thin as others."""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))
    from jupyter_autotrain.agent.slurm.slurm_pilot import main

    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))

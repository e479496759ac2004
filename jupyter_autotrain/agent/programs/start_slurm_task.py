"""The program of a Slurm job: `python -I -S start_slurm_task.py BATCH_FOLDER`. Thin, as `start_supervisor`."""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))
    from jupyter_autotrain.agent.slurm.slurm_task import main

    main(sys.argv[1])

"""The program that a launcher such as `torchrun` starts for each rank: `python -I -S start_rank.py TRIAL_DIR`."""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))
    from jupyter_autotrain.agent.supervisor.rank_main import main

    main(sys.argv[1])

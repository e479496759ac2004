"""The program of a warm process, in the user's interpreter: `start_warm.py FOLDER IDLE_S LIMIT_BYTES BLANKS`."""

import os
import sys

if __name__ == "__main__":
    # As `start_worker`.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from jupyter_autotrain.agent.pool.warm_process import main

    del sys.path[0]
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))

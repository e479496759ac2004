"""The program that the supervisor starts in the user's interpreter: `python start_worker.py TRIAL_DIR CHANNEL`."""

import os
import sys

if __name__ == "__main__":
    # The package is found by its own folder once it is loaded, so the path is needed only here: the user's
    # interpreter may be another one, which must not see the packages installed beside this one.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from jupyter_autotrain.agent.ranks.worker_main import main

    del sys.path[0]
    main(sys.argv[1], int(sys.argv[2]))

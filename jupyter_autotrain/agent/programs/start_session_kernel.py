"""The kernel of a session, in the user's interpreter: `python start_session_kernel.py TRIAL_DIR ARGUMENT...`."""

import os
import sys

if __name__ == "__main__":
    # As `start_worker`.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from jupyter_autotrain.agent.session.jupyter_kernel import main

    del sys.path[0]
    main(sys.argv[1], sys.argv[2:])

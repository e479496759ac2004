"""A program that another job of a service starts beside a trial: `python -I -S start_answer.py FOLDER`."""

import os
import sys

if __name__ == "__main__":
    here = os.path.abspath(__file__)
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(here)))))
    from jupyter_autotrain.agent.pods.service_job import answer

    answer(os.environ, sys.argv[1])

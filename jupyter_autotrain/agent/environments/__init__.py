"""The interpreters that trials run with, found or made where a trial runs. Standard library only, from Python 3.9."""

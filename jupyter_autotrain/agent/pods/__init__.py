"""The code that runs in the pods of trials, with the standard library of Python 3.9 alone."""

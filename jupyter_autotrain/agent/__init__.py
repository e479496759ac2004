"""The code that runs where trials run: Python 3.9, the standard library alone, and nothing else of this package.

It travels whole, as one archive named by its digest. Everything here imports as little as it can: each trial
pays for it.
"""

VERSION = "0.1.0"  # of this package

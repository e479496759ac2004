"""One file per kind of object that can run a trial."""

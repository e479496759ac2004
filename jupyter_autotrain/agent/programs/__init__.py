"""The programs that are started by path, each a few lines; alone in their folder, which Python searches first."""

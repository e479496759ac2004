"""One candidate: a chain of blocks by dynamic programming, and the partition of its blocks over pipeline stages."""

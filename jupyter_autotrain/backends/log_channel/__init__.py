"""The messages of trials in the log of their jobs, where no file comes back while they run: read, kept, judged."""

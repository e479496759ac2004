"""Whether a cluster would take a trial from this user."""

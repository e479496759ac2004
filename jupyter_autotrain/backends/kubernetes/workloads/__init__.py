"""The objects of a trial as they are sent: one file per kind that can run it, and what all kinds share. Pure."""

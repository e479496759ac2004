"""The objects of a trial as they are sent. Pure."""

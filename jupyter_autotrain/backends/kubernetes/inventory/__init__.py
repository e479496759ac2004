"""The inventory of a cluster, and the checks of a trial by it before a submit."""

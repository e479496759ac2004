"""Slurm clusters: jobs by the commands of Slurm, here or on a login node that is reached by SSH."""

"""The code for jobs by Slurm's commands, on the login node of a cluster, or here where these commands are here."""

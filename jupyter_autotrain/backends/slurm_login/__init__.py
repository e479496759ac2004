"""What runs on the login node of a Slurm cluster, or here where Slurm's commands are here: jobs by Slurm's commands."""

#!/bin/bash
#SBATCH --job-name=@JOB_NAME@
#SBATCH --output="@BATCH@/output-%a"
#SBATCH --open-mode=append
#SBATCH --chdir="@BATCH@"
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=1908M
#SBATCH --gres=gpu:a100:2
#SBATCH --time=3
#SBATCH --partition=gpu
#SBATCH --account=lab42
#SBATCH --requeue
#SBATCH --constraint=ib
umask 077
module load cuda
exec srun --mpi=none --nodes=2 --ntasks=2 --kill-on-bad-exit=1 --unbuffered "@PYTHON@" -I -S "@CODE@/jupyter_autotrain/agent/programs/start.py" slurm_task "@BATCH@"

#!/bin/bash
#SBATCH --job-name=@JOB_NAME@
#SBATCH --output="@BATCH@/output-%a"
#SBATCH --open-mode=append
#SBATCH --chdir="@BATCH@"
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --no-requeue
umask 077
exec "@PYTHON@" -I -S "@CODE@/jupyter_autotrain/agent/programs/start.py" slurm_task "@BATCH@"

#!/bin/bash
#SBATCH --job-name=@JOB_NAME@
#SBATCH --output="@BATCH@/output-%a"
#SBATCH --open-mode=append
#SBATCH --chdir="@BATCH@"
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:1
#SBATCH --time=120
#SBATCH --no-requeue
umask 077
exec "@PYTHON@" -I -S "@CODE@/jupyter_autotrain/agent/programs/start.py" slurm_pilot "@BATCH@" 300 7200

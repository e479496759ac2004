#!/bin/sh
# Runs a command where /proc is an empty folder. Usage: unshare --mount --propagation private sh without_proc.sh FOLDER PSUTIL COMMAND...
# psutil, which reads /proc on Linux, is given another one in FOLDER, so that only other readers miss it.
set -eu
folder=$1
psutil=$2
shift 2
mkdir "$folder/proc"
mount -t proc proc "$folder/proc"
sed "s#PROCFS_PATH = \"/proc\"#PROCFS_PATH = \"$folder/proc\"#" "$psutil/__init__.py" > "$folder/psutil.py"
mount -t tmpfs tmpfs "$psutil/__pycache__"
mount --bind "$folder/psutil.py" "$psutil/__init__.py"
mount -t tmpfs tmpfs /proc
exec "$@"

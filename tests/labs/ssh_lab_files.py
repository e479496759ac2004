"""Scripts and configuration files of the hosts of the SSH lab, with the fields that `str.format` fills in."""

BEGIN_CONTROLLER = """
ip link set lo up
ip link add br0 type bridge
ip addr add {network}.1/24 dev br0
ip link set br0 up
echo ready
exec cat >/dev/null
"""
BEGIN_HOST = """
set -e
hostname {name}
{files}
mkdir -p /run/sshd
mount --bind {lab}/passwd /etc/passwd
mount --bind {lab}/boot_id /proc/sys/kernel/random/boot_id
ip link set lo up
echo ready
read connected
ip addr add {address}/24 dev eth0
ip link set eth0 address {hardware_address} up
/usr/sbin/sshd -f {lab}/sshd_config -E {lab}/sshd.log
until ss -ltnH | grep -q ':22 '; do sleep 0.02; done
echo listening
cat >/dev/null
"""
SHARED_FILES = """
mount -t tmpfs tmpfs /run
"""
# A root of its own: programs of this machine, the interpreters of the tests, and a disk that outlives a reboot.
OWN_FILES = """
mount -t tmpfs -o mode=755 tmpfs {root}
cd {root}
mkdir usr etc proc sys dev run lab old
for name in bin sbin lib lib32 lib64 libx32; do
  if [ -L /$name ]; then cp -P /$name .; elif [ -d /$name ]; then mkdir $name; mount --bind -o ro /$name $name; fi
done
for name in usr etc sys; do mount --rbind /$name $name; done
for folder in {disk}/*; do mkdir -p $(basename $folder); mount --bind $folder $(basename $folder); done
for folder in {programs}; do mkdir -p .$folder; mount --bind -o ro $folder .$folder; done
mount --bind {folder}/lab lab
mount -t proc proc proc
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/shm dev/pts dev/net
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount --bind /dev/pts dev/pts
for name in null zero full random urandom tty fuse net/tun; do
  if [ -e /dev/$name ]; then touch dev/$name; mount --bind /dev/$name dev/$name; fi
done
ln -s /proc/self/fd dev/fd
ln -s pts/ptmx dev/ptmx
mount -t tmpfs -o mode=755 tmpfs run
pivot_root . old
cd /
umount -l old
rmdir old
"""
SSHD_CONFIG = """
ListenAddress {address}
HostKey {lab}/host_key
PidFile none
AuthorizedKeysFile {lab}/authorized_keys
TrustedUserCAKeys {lab}/authority.pub
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
MaxSessions 10
MaxStartups 50:50:100
Subsystem sftp internal-sftp
"""
SSH_CONFIG = """
Host {name}
  HostName {address}
  User {user}
  IdentityFile {folder}/user_key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile none
  StrictHostKeyChecking yes
"""

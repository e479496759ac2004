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
mount -t tmpfs tmpfs /run
mkdir /run/sshd
mount --bind {folder}/passwd /etc/passwd
mount --bind {folder}/boot_id /proc/sys/kernel/random/boot_id
ip link set lo up
echo ready
read connected
ip addr add {address}/24 dev eth0
ip link set eth0 address {hardware_address} up
/usr/sbin/sshd -f {folder}/sshd_config -E {folder}/sshd.log
until ss -ltnH | grep -q ':22 '; do sleep 0.02; done
echo listening
cat >/dev/null
"""
SSHD_CONFIG = """
ListenAddress {address}
HostKey {folder}/host_key
PidFile none
AuthorizedKeysFile {keys}
TrustedUserCAKeys {authority}
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
  User root
  IdentityFile {folder}/user_key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile none
  StrictHostKeyChecking yes
"""

#!/bin/bash
# First program of a guest: turns the host's read-only file system into a private, writable root, then
# runs the script named by `lab.main=` on the kernel command line. Each fork costs 27 ms in a guest,
# so this script prefers builtins and one command with many arguments.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
mount -t proc proc /proc
read -r cmdline < /proc/cmdline
arg() { local rest=${cmdline##* lab.$1=}; [[ $rest != "$cmdline" ]] && REPLY=${rest%% *} || REPLY=; }
read -r kernel < /proc/sys/kernel/osrelease
modules=/usr/lib/uml/modules/$kernel

# The root becomes an overlay of the host's root and memory: the host cannot be changed, and every
# program may write where it likes (/etc, /lib/modules, /opt).
mount -t tmpfs overlay /mnt && mkdir /mnt/upper /mnt/work /mnt/root
insmod "$modules/kernel/fs/overlayfs/overlay.ko"
mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/root || exec echo "no overlay root"
cd /mnt/root && pivot_root . mnt && cd / || exec echo "cannot change the root"
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm /dev/mqueue "${modules%/*}" /lib/modules
mount -t devpts -o ptmxmode=666 devpts /dev/pts; mount -t tmpfs shm /dev/shm; mount -t mqueue mqueue /dev/mqueue
mount -t tmpfs -o mode=755 run /run; mkdir -p /run/netns /run/lock /run/tmp /run/host /run/lab /run/out
export TMPDIR=/run/tmp # runc refuses to exec without a writable one
# A lookup in the overlay may be cached as "absent"; what the host writes later is read through these.
mount -t hostfs -r -o / host /run/host
arg state; [[ $REPLY ]] && mount -t hostfs -r -o "$REPLY" lab /run/lab
arg out; [[ $REPLY ]] && mount -t hostfs -o "$REPLY" out /run/out

[[ -e /lib/modules/$kernel ]] || ln -s "$modules" "/lib/modules/$kernel"
# ESP, sets and the legacy tables: this kernel has no nftables for IPv4 and IPv6.
modprobe -a bridge br_netfilter veth vxlan geneve xfrm_user esp4 esp6 xfrm4_tunnel xfrm6_tunnel gcm seqiv echainiv chacha20poly1305 \
  ip_set ip_set_hash_net ip_set_hash_ip xt_set ip_tables ip6_tables iptable_nat iptable_filter iptable_mangle iptable_raw \
  ip6table_nat ip6table_filter ip6table_mangle ip6table_raw xt_MASQUERADE xt_TCPMSS xt_policy xt_comment xt_mark \
  xt_conntrack xt_statistic xt_addrtype xt_nat xt_REDIRECT xt_tcpudp xt_multiport xt_NFLOG nf_conntrack sch_netem sch_tbf \
  > /run/modprobe.log 2>&1
for tool in iptables ip6tables iptables-save iptables-restore ip6tables-save ip6tables-restore; do
  links+=("/usr/sbin/${tool%%-*}-legacy${tool#"${tool%%-*}"}" "/etc/alternatives/$tool")
done
for ((i = 0; i < ${#links[@]}; i += 2)); do ln -sf "${links[i]}" "${links[i + 1]}"; done
echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
ip link set lo up
arg main; main=$REPLY
# shellcheck disable=SC1090
source "$main"

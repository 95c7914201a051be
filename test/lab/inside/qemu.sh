#!/bin/bash
# Second program of a QEMU guest (after initramfs.sh): the file systems and modules that boot.sh gives to guests of User Mode
# Linux, with nftables in place of the legacy tables, then the script named by `lab.main=`.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs devtmpfs /dev
read -r cmdline < /proc/cmdline
arg() { local rest=${cmdline##* lab.$1=}; [[ $rest != "$cmdline" ]] && REPLY=${rest%% *} || REPLY=; }
read -r kernel < /proc/sys/kernel/osrelease
mkdir -p /dev/pts /dev/shm /dev/mqueue /lib/modules
mount -t devpts -o ptmxmode=666 devpts /dev/pts; mount -t tmpfs shm /dev/shm; mount -t mqueue mqueue /dev/mqueue
mount -t tmpfs -o mode=755 run /run; mkdir -p /run/netns /run/lock /run/tmp /run/lab /run/out
mount -t cgroup2 cgroup /sys/fs/cgroup
export TMPDIR=/run/tmp
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=none lab /run/lab && mount --bind /run/lab/out /run/out
arg modules; ln -sfn "$REPLY" "/lib/modules/$kernel"
modprobe -a xfrm_user esp4 esp6 gcm seqiv echainiv chacha20poly1305 nf_tables nft_chain_nat nft_masq nft_ct nft_compat nft_limit \
  ip_set_hash_net xt_set xt_MASQUERADE xt_TCPMSS veth vxlan bridge > /run/modprobe.log 2>&1
echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
ip link set lo up
arg main
# shellcheck disable=SC1090
source "$REPLY"

#!/bin/busybox sh
# First program of a QEMU guest, in its initramfs: makes an overlay of the host's root and memory the root, as boot.sh
# does in User Mode Linux, and goes on in the script named by `lab.boot=` on the kernel command line.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t devtmpfs dev /dev; exec < /dev/console > /dev/console 2>&1
mount -t proc proc /proc
while read -r module; do insmod "/modules/$module" || echo "module $module does not load"; done < /modules/order
# The host does not change what a guest reads from its root, so all of it may be cached. The default of 8 KiB a message is slow.
mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose host /host || echo "cannot reach the host's files"
mount -t tmpfs memory /memory && mkdir /memory/upper /memory/work /memory/root
mount -t overlay -o lowerdir=/host,upperdir=/memory/upper,workdir=/memory/work overlay /memory/root || echo "no overlay root"
boot=$(sed -n 's/.* lab\.boot=\([^ ]*\).*/\1/p' /proc/cmdline)
exec switch_root /memory/root /bin/bash "$boot"

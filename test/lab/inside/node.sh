# Body of a Kubernetes node (sourced by boot.sh): network, containerd, kubelet, kube-proxy and the
# exec agent. Every file it needs was written by the host below /run/lab/nodes/NODE.
arg node; node=$REPLY own=/run/lab/nodes/$node log=/run/out
source "$own/environment" # tools, agent_address
export PATH=$tools:$PATH
echo "$node" > /proc/sys/kernel/hostname
say() { read -r up _ < /proc/uptime; echo "[$up] $node: $*"; }

mount -t cgroup2 cgroup2 /sys/fs/cgroup; mkdir /sys/fs/cgroup/init; echo $$ > /sys/fs/cgroup/init/cgroup.procs
read -r controllers < /sys/fs/cgroup/cgroup.controllers
for c in $controllers; do echo "+$c" > /sys/fs/cgroup/cgroup.subtree_control; done
mount -t bpf bpf /sys/fs/bpf; mount --make-rshared /
# cAdvisor refuses to start without a clock speed, which this kernel does not print.
{ while read -r line; do [[ $line ]] && echo "$line"; done < /proc/cpuinfo
  printf 'cpu MHz\t\t: 2000.000\nphysical id\t: 0\ncore id\t\t: 0\n\n'; } > /run/cpuinfo
mount --bind /run/cpuinfo /proc/cpuinfo
# The overlay root cannot be the upper layer of containers.
mkdir -p /var/lib/containerd /var/lib/kubelet /var/log/pods /var/log/containers
mount -t tmpfs containerd /var/lib/containerd; mount -t tmpfs kubelet /var/lib/kubelet
ulimit -n 65536

# The agent's device lives in a namespace of its own: a node cut off from its cluster can still be asked,
# and no program under test sees the extra device.
ip netns add console
ip link set vec1 netns console
ip -n console -batch "$own/console.batch"
/usr/bin/python3 -I -S "$own/agent.py" "$agent_address" > "$log/agent.log" 2>&1 &
echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables; echo 1 > /proc/sys/net/bridge/bridge-nf-call-ip6tables
# A guest that waits for a processor must find its packets when it runs again: what is lost is to be Fabric's loss.
echo 20000 > /proc/sys/net/core/netdev_max_backlog; echo 33554432 > /proc/sys/net/core/rmem_max
ip -batch "$own/network.batch"
iptables-restore --noflush < "$own/masquerade.v4"
ip6tables-restore --noflush < "$own/masquerade.v6"
rm -rf /etc/cni/net.d; mkdir -p /etc/cni/net.d /etc/containerd
cp "$own/cni.conflist" /etc/cni/net.d/10-lab.conflist; cp "$own/containerd.toml" /etc/containerd/config.toml
cp "$own/resolv.conf" /etc/resolv.conf

# What systemd does elsewhere: a program that exits is started again.
keep() { local name=$1; shift; while :; do "$@" >> "$log/$name.log" 2>&1; sleep 1; done; }
keep containerd containerd &
keep kube-proxy kube-proxy --config "$own/proxy.yaml" &
until [[ -S /run/containerd/containerd.sock ]]; do sleep .3; done # a kubelet without it exits
keep kubelet kubelet --config "$own/kubelet.yaml" --kubeconfig "$own/kubelet.kubeconfig" --hostname-override "$node" \
  --node-ip "$node_ips" &
# --local saves the copy through the transfer service: a third of the time.
until ctr --namespace k8s.io images import --local "$pause_image" > "$log/import.log" 2>&1; do sleep .3; done
say "sandbox image is in"
for image in $images; do ctr --namespace k8s.io images import --local "$image" >> "$log/import.log" 2>&1 || say "cannot import $image"; done
say "images are in"
while :; do wait -n; sleep 1; done # PID 1: reap what is orphaned here

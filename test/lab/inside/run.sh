# Body of a light guest (sourced by boot.sh): runs /run/lab/command once, leaves its output and exit
# code in /run/out, and powers off.
mkdir -p /tmp; arg cwd; cd "$REPLY" 2>/dev/null || cd /
bash /run/lab/command < /dev/null > /run/out/stdout 2> /run/out/stderr
echo $? > /run/out/rc
echo o > /proc/sysrq-trigger; sleep 60

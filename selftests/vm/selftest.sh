#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Test of the virtual machine rig itself, in TAP: each promise that "run --help"
# makes to a test is checked once. Takes two minutes on an idle machine.

set -euo pipefail
export LC_ALL=C

here=$(dirname "$(realpath "$0")")
run=$here/run
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export TMPDIR=$tmp	# where run keeps its files, to see what it leaves

case ${1-} in
'') ;;
-h|--help) echo "Usage: selftest.sh - tests selftests/vm/run, prints TAP"; exit 0 ;;
*) echo "selftest.sh: no arguments expected, see --help" >&2; exit 2 ;;
esac

count=0 failed=0 runs=0 shown=0
ok() {
	count=$((count + 1))
	echo "ok $count - $1"
}
not_ok() {
	count=$((count + 1)) failed=$((failed + 1))
	echo "not ok $count - $1"
	# What the run said, once for all that fails of it.
	[ "$shown" = "$runs" ] || cat "$tmp/out" "$tmp/err" | sed 's/^/# /'
	shown=$runs
}
# check DESCRIPTION COMMAND...: the command's truth is the result.
check() {
	if "${@:2}" >/dev/null 2>&1; then ok "$1"; else not_ok "$1"; fi
}

# vm ARG...: runs the rig; leaves $status, $tmp/out with the arrival time before
# each line, and $tmp/err.
vm() {
	local line
	status=0 runs=$((runs + 1))
	"$run" "$@" 2>"$tmp/err" </dev/null | while IFS= read -r line; do
		printf '%d %s\n' "$SECONDS" "$line"
	done >"$tmp/out" || status=$?
}
status_is()	{ [ "$status" = "$1" ]; }
out_has()	{ grep -qE -- "^[0-9]+ $1\$" "$tmp/out"; }
err_has()	{ grep -qE -- "$1" "$tmp/err"; }
# came_apart LINE1 LINE2: the second arrived at least two seconds later.
came_apart()	{ awk -v a="$1" -v b="$2" '$2 == a { t = $1 } $2 == b { d = $1 - t } END { exit !(d >= 2) }' "$tmp/out"; }
nothing_left()	{ [ "$(cd "$tmp" && echo towpin-vm.*)" = 'towpin-vm.*' ]; }
# The machines of this test have its temporary folder in their arguments.
no_machine()	{ ! pgrep -f "^qemu-system-x86_64.*$tmp/"; }

echo "TAP version 13"

vm --help
check "--help: exit status 0 and the list of codes" status_is 0
check "--help: names the options" out_has '.*--icount.*'

vm -k 0.0 true
check "missing kernel: exit status 202" status_is 202
check "missing kernel: one line that tells what to do" err_has "^vm: no kernel '0.0'.*make setup"

# shellcheck disable=SC2016
vm --numa 2 --disk 16 --out "$tmp/keep" -- bash -c '
	echo first; sleep 3; echo second
	echo to-stderr >&2
	echo "cwd $PWD"
	printf "<%s>\n" "$@"
	echo "nodes" /sys/devices/system/node/node[0-9]*
	echo "disk $(blockdev --getsize64 /dev/vda)"
	modprobe dummy && grep -q ^dummy /proc/modules && echo "module loaded"
	echo "memlock $(ulimit -l)"
	echo result >/out/file
	echo trash >"$0.trash"
	exit 7' "$here/run" 'a  b' "it's" '$HOME "x" \n' '' '*'
check "exit status 7 goes through" status_is 7
check "standard error arrives" out_has to-stderr
check "output is live" came_apart first second
check "current directory" out_has "cwd $(pwd -P)"
check "argument with spaces" out_has '<a  b>'
check "argument with a single quote" out_has "<it's>"
# shellcheck disable=SC2016
check "argument with dollar, double quotes, backslash" out_has '<\$HOME "x" \\n>'
check "empty argument" out_has '<>'
check "argument with a glob" out_has '<\*>'
check "--numa 2: two nodes" out_has 'nodes \S+/node0 \S+/node1'
check "--disk: of that size" out_has "disk $((16 << 20))"
check "modprobe" out_has 'module loaded'
check "memlock is unlimited" out_has 'memlock unlimited'
check "--out: a file of the command" grep -q result "$tmp/keep/file"
check "--out: kernel log, output, status" test -s "$tmp/keep/dmesg" -a -s "$tmp/keep/output" -a -s "$tmp/keep/status"
check "the host's files are not changed" test ! -e "$here/run.trash"

vm -k 6.1 uname -r
check "6.1: exit status 0" status_is 0
check "6.1: is that kernel" out_has '6\.1\..*'

# The least of several rounds: a timer interrupt may fall into some of them.
# shellcheck disable=SC2016
syscalls='use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC); my $min = 1e9;
for (1 .. 20) {
	my $t = clock_gettime(CLOCK_MONOTONIC); getppid for 1 .. 100;
	$t = clock_gettime(CLOCK_MONOTONIC) - $t; $min = $t if $t < $min;
}
printf "%.0f instructions\n", $min * 1e9;'
vm --icount perl -e "$syscalls"
cp "$tmp/out" "$tmp/icount"
check "--icount: exit status 0" status_is 0
check "--icount: a figure" out_has '[0-9]+ instructions'
# shellcheck disable=SC2016
vm --icount sh -c 'perl -e "$0"; echo "WARNING: CPU: 0 PID: 1 at made/up.c:1" >/dev/kmsg' "$syscalls"
check "--icount: the same figure again" test "$(cut -d' ' -f2 "$tmp/out")" = "$(cut -d' ' -f2 "$tmp/icount")"
check "splat: exit status 203 though the command returned 0" status_is 203
check "splat: is shown" err_has 'WARNING: CPU: 0 PID: 1 at made/up.c:1'

vm sh -c 'echo before; echo c >/proc/sysrq-trigger'
check "panic: exit status 200" status_is 200
check "panic: output before it arrives" out_has before
check "panic: is shown" err_has 'Kernel panic|sysrq_handle_crash'

vm -t 12 --out "$tmp/keep" sh -c 'echo before; sleep 100'
check "hang: exit status 201" status_is 201
check "hang: output before it arrives" out_has before
check "hang: the stacks of the tasks are kept" grep -q 'sysrq: Show State' "$tmp/keep/console"
check "no machine is left" no_machine
check "no file is left" nothing_left

"$run" sleep 100 >"$tmp/out" 2>"$tmp/err" &
sleep 2
check "SIGTERM: there was a machine" pgrep -f "^qemu-system-x86_64.*$tmp/"
kill -TERM $!
status=0; wait $! || status=$?
check "SIGTERM: exit status 143" status_is 143
check "SIGTERM: no machine is left" no_machine
check "SIGTERM: no file is left" nothing_left
check "SIGTERM: nothing is said" test ! -s "$tmp/err"

"$run" sleep 100 >"$tmp/out" 2>"$tmp/err" &
sleep 2
kill -KILL $!
wait $! 2>/dev/null || true
sleep 0.5
check "SIGKILL: no machine is left" no_machine

echo "1..$count"
[ $failed = 0 ]

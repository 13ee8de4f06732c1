#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Test of the command tow, in TAP.
#
# Environment: TOW, the command (build/tools/tow); HOSTILE_PEER, the peer that
# breaks the rules (beside it, in ../selftests/tools); TOW_PROVIDER as for tow.
#
# Invariants: every process started has a time limit and is ended before the
# script is; nothing is written outside one temporary directory; a test that
# cannot be made here is a SKIP with its reason.

# shellcheck disable=SC2016	# programs for bash -c

set -u
export LC_ALL=C

TOW=$(realpath "${TOW:-build/tools/tow}")
HOSTILE_PEER=${HOSTILE_PEER:-$(dirname "$TOW")/../selftests/tools/hostile_peer}
HOSTILE_PEER=$(realpath "$HOSTILE_PEER")
W=$(mktemp -d)
export XDG_RUNTIME_DIR=$W/run TMPDIR=$W
mkdir -m 0700 "$XDG_RUNTIME_DIR" "$W/out"
cd "$W/out" || exit 1

MIB=1048576
LIMIT=15		# seconds for one process
count=0 failed=0
declare -A pids=()

cleanup() {
	local pid
	for pid in "${pids[@]}"; do
		kill -9 "$pid" 2>/dev/null
	done
	rm -rf "$W"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

# ---- assertions: collect what is wrong in one test ----

wrong=
orphans=	# set: a receiver was killed that had a file with a name

test_end() {	# DESCRIPTION
	count=$((count + 1))
	if [ -z "$wrong" ]; then
		echo "ok $count - $1"
	else
		failed=$((failed + 1))
		echo "not ok $count - $1"
		echo -n "$wrong" | sed 's/^/# /'
	fi
	wrong=
}
skip() {	# DESCRIPTION REASON
	count=$((count + 1))
	echo "ok $count - $1 # SKIP $2"
}
bad() { wrong+="$*"$'\n'; }
eq() {		# WHAT GOT WANTED
	[ "$2" = "$3" ] || bad "$1: got '$2', not '$3'"
}
same() {	# FILE FILE
	cmp -s "$1" "$2" || bad "${1##*/} and ${2##*/} differ"
}
# One line on stderr, a message with that text; so nothing from a sanitizer.
complains() {	# ID TEXT
	local err
	err=$(<"$W/$1.err")
	[[ $err == *"$2"* ]] || bad "$1: no '$2' in: $err"
	[[ $err == "tow "*": "* ]] || bad "$1: not a message of tow: $err"
	eq "$1: lines on stderr" "$(wc -l <"$W/$1.err")" 1
}
silent() {	# ID
	eq "$1: stderr" "$(<"$W/$1.err")" ''
}
exits() {	# ID STATUS [LIMIT]
	local rc
	finish "$1" "${3-$LIMIT}"
	rc=$?
	eq "$1: exit status" $rc "$2"
	[ $rc = "$2" ] || bad "$1: stderr: $(<"$W/$1.err")"
}
empty_dir() {	# nothing, hidden or not, but what is named
	local found
	[ -z "$orphans" ] || rm -f "$W"/out/.towpin.*
	orphans=
	found=$(ls -A "$W/out")
	eq 'files left' "${found//$'\n'/ }" "$*"
	rm -rf "$W"/out/* "$W"/out/.[!.]*
}
no_names() {	# in the rendezvous directory
	eq 'names left' "$(ls -A "$XDG_RUNTIME_DIR/towpin" 2>/dev/null)" ''
}

# ---- processes ----

# Not "read -t": on a slow machine bash 5.2 can miss its alarm and never return.
nap() { sleep "$1"; }

# IN and OUT, if set, are the files for stdin and stdout.
start() {	# ID COMMAND...
	local id=$1
	shift
	# a shell has its background jobs ignore SIGINT
	env --default-signal=INT "$@" \
		<"${IN:-/dev/null}" >"${OUT:-$W/$id.out}" 2>"$W/$id.err" &
	pids[$id]=$!
}
# Waits, but not longer than LIMIT; returns the exit status, 137 when too late.
finish() {	# ID LIMIT
	local pid=${pids[$1]} end=$((SECONDS + $2 + 1))
	while kill -0 "$pid"; do
		if [ $SECONDS -ge $end ]; then
			bad "$1: still there after $2 s"
			end=$((end + 1000))
			kill -9 "$pid"
		fi
		nap 0.02
	done
	unset "pids[$1]"
	wait "$pid"
} 2>/dev/null	# the shell tells of those that were killed
send() { start s "$TOW" send "$@"; }
recv() { start r "$TOW" recv "$@"; }
# Until recv ID listens, by the name of its socket.
listening() {	# NAME
	local i
	for ((i = 0; i < 500; i++)); do
		[ -S "$XDG_RUNTIME_DIR/towpin/$1.sock" ] && return
		nap 0.01
	done
	bad "$1: nobody listens"
}
keys() {	# FILE
	grep -o '"[a-z0-9_]*":' "$1" | tr -d '":' | sort | tr '\n' ' '
}
value() {	# FILE KEY
	sed -n "s/.*\"$2\": \"\\{0,1\\}\\([^\",}]*\\).*/\\1/p" "$1" |
		tr -d ' '
}
data() {	# BYTES
	head -c "$1" "$W/data"
}

# ---- tests ----

head -c $((20 * MIB + 4097)) /dev/urandom >"$W/data"
provider=$(value <("$TOW" info --json) provider)
echo "TAP version 13"
echo "# provider: $provider"

# An empty, a one-byte stream, and all that can go wrong by one at a slot's end.
for geometry in 1x4096 2x8192 8x65536; do
	k=${geometry%x*} size=${geometry#*x}
	for n in 0 1 $((size - 1)) "$size" $((size + 1)) $((k * size - 1)) \
		 $((k * size)) $((k * size + 1)) $((5 * k * size + 7)); do
		data "$n" >"$W/in"
		recv size f
		send --slots "$k" --slot-size "$size" size "$W/in"
		exits s 0
		exits r 0
		silent s
		silent r
		same f "$W/in"
		empty_dir f
	done
	no_names
	test_end "file to file, sizes around $k slots of $size"
done

recv default f
send default "$W/data"
exits s 0
exits r 0
same f "$W/data"
empty_dir f
test_end 'file to file, default slots, 20 MiB'

IN=$W/data send stdin -
OUT=$W/out/f recv stdin
exits s 0
exits r 0
same f "$W/data"
empty_dir f
test_end 'stdin redirected from a file, stdout to a file'

for n in 0 1 65537 $((3 * MIB + 1)); do
	data "$n" >"$W/in"
	start s bash -c 'cat "$1" | "$2" send pipe' - "$W/in" "$TOW"
	start r bash -o pipefail -c '"$2" recv pipe - | cat >"$1"' - f "$TOW"
	exits s 0
	exits r 0
	same f "$W/in"
	empty_dir f
done
test_end 'pipe to pipe'

data $MIB >"$W/in"
start s bash -c '(for i in 1 2 3 4 5; do head -c 100; sleep 0.05; done
	cat) <"$1" | "$2" send slow' - "$W/in" "$TOW"
recv slow f
exits s 0
exits r 0
same f "$W/in"
empty_dir f
test_end 'a source that pauses'

start r bash -o pipefail -c '"$1" recv slow |
	(sleep 0.3; head -c 100000; sleep 0.3; cat) >f' - "$TOW"
send slow "$W/data"
exits s 0
exits r 0
same f "$W/data"
empty_dir f
test_end 'a destination that pauses'

# each byte must be there soon, not only when a slot is full
mkfifo "$W/fifo"
IN=$W/fifo send live --slot-size 1M
OUT=$W/out/f recv live
exec {pen}>"$W/fifo"
printf x >&$pen
for ((i = 0; i < 300; i++)); do
	[ -s f ] && break
	nap 0.01
done
eq 'the byte' "$(cat f)" x
exec {pen}>&-
exits s 0
exits r 0
empty_dir f
test_end 'what a source has is sent before it has more'

mkfifo p
start c cp p "$W/copy"
recv fifo p
send fifo "$W/data"
exits s 0
exits r 0
exits c 0
same "$W/copy" "$W/data"
empty_dir p
recv null /dev/null
send null "$W/data"
exits s 0
exits r 0
silent r
test_end 'a FIFO and /dev/null as destination'

recv first f
listening first
nap 0.1
send first "$W/data"
exits s 0
exits r 0
same f "$W/data"
empty_dir f
send first "$W/data"
nap 0.3
recv first f
exits s 0
exits r 0
same f "$W/data"
empty_dir f
test_end 'either side may be first'

for i in 1 2 3 4 5 6; do
	data $((i * MIB + i)) >"$W/in$i"
	start r$i "$TOW" recv many.$i f$i
	start s$i "$TOW" send --slots 3 --slot-size 64K many.$i "$W/in$i"
done
for i in 1 2 3 4 5 6; do
	exits s$i 0
	exits r$i 0
	same f$i "$W/in$i"
done
empty_dir f1 f2 f3 f4 f5 f6
test_end 'six transfers at once'

# ---- results ----

all='bytes chunks command crc32c name operations peer_pid peer_uid provider '
all+='seconds slot_size slots throughput_bytes_per_second '
printf 123456789 >"$W/in"
recv --json js f
send --json js "$W/in" --slots 2 --slot-size 8K
s_pid=${pids[s]} r_pid=${pids[r]}
exits s 0
exits r 0
silent s
silent r
for side in s r; do
	j=$W/$side.out
	eq "$side: lines" "$(wc -l <"$j")" 1
	eq "$side: keys" "$(keys "$j")" "$all"
	eq "$side: name" "$(value "$j" name)" js
	eq "$side: bytes" "$(value "$j" bytes)" 9
	eq "$side: crc32c" "$(value "$j" crc32c)" e3069283
	eq "$side: provider" "$(value "$j" provider)" "$provider"
	eq "$side: chunks" "$(value "$j" chunks)" 1
	eq "$side: operations" "$(value "$j" operations)" 1
	eq "$side: slots" "$(value "$j" slots)" 2
	eq "$side: slot_size" "$(value "$j" slot_size)" 8192
	eq "$side: peer_uid" "$(value "$j" peer_uid)" "$(id -u)"
done
eq 'command of send' "$(value "$W/s.out" command)" send
eq 'command of recv' "$(value "$W/r.out" command)" recv
eq 'peer of send' "$(value "$W/s.out" peer_pid)" "$r_pid"
eq 'peer of recv' "$(value "$W/r.out" peer_pid)" "$s_pid"
empty_dir f
test_end 'send and recv --json'

OUT=$W/out/f recv --json js
send js "$W/in"
exits s 0
exits r 0
eq 'keys on stderr' "$(keys "$W/r.err")" "$all"
same f "$W/in"
empty_dir f
test_end 'recv --json on stderr when the stream is on stdout'

start i "$TOW" info --json
exits i 0
silent i
eq keys "$(keys "$W/i.out")" "engines entries inline_max max_eventfds \
max_handles max_length memlock provider reason version "
start i "$TOW" info
exits i 0
grep -q "^provider  *$provider " "$W/i.out" || bad "no provider line"
if [ "$provider" = kmod ]; then
	eq reason "$(value "$W/i.out" reason)" ''
	grep -q '^because' "$W/i.out" && bad "kmod, yet a reason"
else
	grep -q '^because  *.' "$W/i.out" || bad "no reason line"
fi
test_end 'info'

start d "$TOW" demo --json --size 3000001 --runs 1
exits d 0
silent d
eq keys "$(keys "$W/d.out")" "bytes chunks cpu_seconds cpu_seconds crc32c \
identical pipe provider runs seconds seconds throughput_bytes_per_second \
throughput_bytes_per_second tow "
eq bytes "$(value "$W/d.out" bytes)" 3000001
start d "$TOW" demo --runs 2 "$W/in"
exits d 0
silent d
grep -q 'all copies identical' "$W/d.out" || bad "no verdict"
start d "$TOW" demo "$W/none"
exits d 1
complains d 'cannot open'
eq 'left in TMPDIR' "$(ls -d "$W"/tow-demo* 2>/dev/null)" ''
test_end 'demo'

# ---- files that exist, cannot be written or read ----

echo old >f
recv exists f
exits r 1
complains r '--force'
eq content "$(<f)" old
ln -s nowhere l
recv exists l
exits r 1
complains r '--force'
recv exists --force f
send exists "$W/in"
exits s 0
exits r 0
same f "$W/in"
recv exists --sync g
send exists "$W/in"
exits s 0
exits r 0
same g "$W/in"
empty_dir f g l
test_end 'an existing file is replaced with --force only'

recv race f
listening race
echo mine >f
send race "$W/in"
exits s 1
exits r 1
complains s 'could not write its output'
complains r 'exists by now'
eq content "$(<f)" mine
empty_dir f
test_end 'a file that appears meanwhile is not replaced'

for where in none/f . / f/ ''; do
	recv bad "$where"
	exits r 1
	complains r ''
done
send bad none
exits s 1
complains s 'cannot open none'
send bad .
exits s 1
complains s 'is a directory'
no_names
empty_dir
test_end 'files that cannot be'

recv full /dev/full
send full "$W/data"
exits s 1
exits r 1
complains s 'could not write its output'
complains r 'No space left on device'
OUT=/dev/full recv full
send full "$W/data"
exits s 1
exits r 1
complains r 'No space left on device'
OUT=/dev/full recv --json full f
send full "$W/in"
exits r 1
exits s 0
complains r 'JSON'
empty_dir f
OUT=/dev/full start i "$TOW" info
exits i 1
complains i 'standard output'
test_end 'a full disk'

start r bash -c '"$1" recv closed >&-' - "$TOW"
exits r 1
complains r 'standard output is closed'
start s bash -c '"$1" send closed <&-' - "$TOW"
exits s 1
complains s 'standard input'
start s bash -c '"$1" send closed "$2" >&- <&- 2>&-' - "$TOW" "$W/data"
start r bash -c '"$1" recv closed f >&- <&- 2>&-' - "$TOW"
exits s 0
exits r 0
same f "$W/data"
empty_dir f
start i bash -c '"$1" info >&-' - "$TOW"
exits i 1
complains i 'standard output'
start r bash -o pipefail -c '"$1" recv closed | head -c 10 >f' - "$TOW"
send closed "$W/data"
exits s 1
exits r 1
complains r 'its reader went away'
empty_dir f
test_end 'closed standard streams'

# ---- command lines ----

usage() {	# TEXT ARGUMENT...
	local text=$1
	shift
	start u "$TOW" "$@"
	exits u 2
	[[ $(<"$W/u.err") == *"$text"* ]] || bad "no '$text' for $*"
}
usage 'no command'
usage 'no command' nonsense
usage 'no NAME' send
usage 'no NAME' recv
long=$(printf 'x%.0s' {1..65})
for name in '' . .hidden a/b ../up 'a b' 'a*' é "$long"; do
	usage 'bad NAME' send "$name"
	usage 'bad NAME' recv "$name"
done
usage 'too many' send a b c
usage 'too many' recv a b c
usage 'too many' info a
usage 'too many' demo a b
for arg in 0 1025 -1 x 1x '' 99999999999999999999; do
	usage 'bad --slots' send a --slots="$arg"
done
for arg in 0 1 4095 4097 2G 16E -4K x 4KK K '' 99999999999999999999; do
	usage 'bad --slot-size' send a --slot-size="$arg"
done
usage '4G' send a --slots 5 --slot-size 1G
for arg in -1 x 1x nan inf '' 1e99; do
	usage 'bad --timeout' send a --timeout="$arg"
	usage 'bad --timeout' recv a --timeout="$arg"
done
usage 'bad --runs' demo --runs 0
usage 'bad --size' demo --size x
for cmd in send recv info demo; do
	usage 'unrecognized option' $cmd --nonsense
	start h "$TOW" $cmd --help
	exits h 0
	start h "$TOW" $cmd --version
	exits h 0
done
start h "$TOW" --help
exits h 0
start h "$TOW" --version
exits h 0
TOW_PROVIDER=nonsense start i "$TOW" info
exits i 1
complains i 'TOW_PROVIDER'
no_names
test_end 'wrong command lines'

recv "${long:1}" f
send "${long:1}" "$W/in"
exits s 0
exits r 0
empty_dir f
test_end 'the longest name'

# ---- meeting ----

t=$(date +%s%N)
send nobody --timeout 0 "$W/in"
exits s 1
complains s 'no receiver'
send nobody --timeout 0.3 "$W/in"
start r "$TOW" recv nobody2 --timeout 0.3 f
exits s 1
exits r 1
complains s 'no receiver'
complains r 'no sender'
t=$((($(date +%s%N) - t) / 1000000))
[ $t -lt 5000 ] || bad "took $t ms"
empty_dir
no_names
test_end 'time-out without a peer'

recv second f
listening second
start r2 "$TOW" recv second g
exits r2 1
complains r2 'Address already in use'
send second "$W/in"
exits s 0
exits r 0
same f "$W/in"
empty_dir f
test_end 'a second receiver of one name'

recv stale f
listening stale
orphans=$(compgen -G '.towpin.*')	# where files cannot be without
kill -9 "${pids[r]}"
finish r $LIMIT
[ -S "$XDG_RUNTIME_DIR/towpin/stale.sock" ] || bad 'no stale socket'
send stale --timeout 0 "$W/in"
exits s 1
complains s 'no receiver'
send stale "$W/in"
nap 0.1
recv stale f
exits s 0
exits r 0
same f "$W/in"
empty_dir f
no_names
test_end 'a stale socket'

for i in 1 2 3; do
	chmod 0755 "$XDG_RUNTIME_DIR/towpin"
	rm -rf "$XDG_RUNTIME_DIR/towpin"
	recv newdir f
	send newdir "$W/in"
	exits s 0
	exits r 0
	empty_dir f
done
eq mode "$(stat -c %a "$XDG_RUNTIME_DIR/towpin")" 700
chmod 0777 "$XDG_RUNTIME_DIR/towpin"
recv open f
exits r 1
complains r 'everyone can write'
chmod 0700 "$XDG_RUNTIME_DIR/towpin"
XDG_RUNTIME_DIR=$W/nowhere send a "$W/in"
exits s 1
complains s 'XDG_RUNTIME_DIR'
deep=$W/run/$(printf 'd%.0s' {1..200})
mkdir "$deep"
XDG_RUNTIME_DIR=$deep recv a f
XDG_RUNTIME_DIR=$deep send a "$W/in"
exits s 0
exits r 0
empty_dir f
test_end 'the rendezvous directory'

# Another user, but of the device's group.
group=$(stat -c %g /dev/towpin 2>/dev/null || echo 65534)
nobody() {	# ID ARGUMENT...
	local id=$1
	shift
	start "$id" setpriv --reuid 65534 --regid "$group" --clear-groups \
		"$TOW" "$@"
}
nobody_provider() {
	nobody i info --json
	finish i $LIMIT
	value "$W/i.out" provider
}
if [ "$(id -u)" != 0 ]; then
	skip 'other users' 'not root'
elif [ "$(nobody_provider)" != "$provider" ]; then
	skip 'other users' "another user cannot use provider $provider"
else
	chmod 0755 "$W" "$XDG_RUNTIME_DIR"
	chmod 1777 "$XDG_RUNTIME_DIR/towpin" "$W/out"
	chmod 0644 "$W/in"
	recv --any-user users f
	listening users
	nobody s send users "$W/in"
	exits s 0
	exits r 0
	same f "$W/in"
	empty_dir f
	recv users f
	listening users
	nobody s send users "$W/in"
	exits s 1
	complains s 'Permission denied'
	chmod 0666 "$XDG_RUNTIME_DIR/towpin/users.sock"
	nobody s send users "$W/in"
	exits s 1
	complains s 'serves its own user and root only'
	send users "$W/in"
	exits s 0
	exits r 0
	complains r 'refused a sender of user 65534'
	same f "$W/in"
	empty_dir f
	nobody r recv users
	listening users
	send users "$W/in"
	exits s 1
	complains s 'refused a receiver of user 65534'
	exits r 1
	complains r 'serves its own user and root only'
	nobody r recv users
	send users --any-user "$W/in"
	exits s 0
	exits r 0
	same "$W/r.out" "$W/in"
	chmod 0700 "$XDG_RUNTIME_DIR/towpin"
	test_end 'other users'
fi

# ---- dying ----

endless() { IN=/dev/zero send "$@"; }
running() {	# NAME: the receiver has its sender
	listening "$1"
	endless "$1"
	local i
	for ((i = 0; i < 500; i++)); do
		[ -S "$XDG_RUNTIME_DIR/towpin/$1.sock" ] || break
		nap 0.01
	done
	nap 0.2
}
# Kills ID by SIGNAL; the other one must end with 1 soon.
killed() {	# ID SIGNAL OTHER TEXT
	local t
	t=$(date +%s%N)
	kill -"$2" "${pids[$1]}"
	finish "$1" $LIMIT
	exits "$3" 1
	t=$((($(date +%s%N) - t) / 1000000))
	[ $t -lt 3000 ] || bad "$3 took $t ms to notice"
	complains "$3" "$4"
}

recv kill f
running kill
killed s 9 r 'peer went away'
empty_dir
no_names
recv kill f
running kill
orphans=$(compgen -G '.towpin.*')
killed r 9 s 'peer went away'
empty_dir
recv kill f
send kill "$W/in"
exits s 0
exits r 0
empty_dir f
no_names
test_end 'kill -9 of the sender, of the receiver; the name is free at once'

for sig in INT TERM HUP; do
	recv kill f
	running kill
	killed s $sig r 'stopped by a signal'
	complains s 'stopped by signal'
	empty_dir
	recv kill f
	running kill
	killed r $sig s 'stopped by a signal'
	complains r 'stopped by signal'
	empty_dir
	recv kill f
	listening kill
	kill -$sig "${pids[r]}"
	exits r 1
	complains r 'stopped by signal'
	send kill "$W/in"
	nap 0.4		# it must have its handlers by then
	kill -$sig "${pids[s]}"
	exits s 1
	complains s 'stopped by signal'
	empty_dir
	no_names
done
test_end 'SIGINT, SIGTERM, SIGHUP, before and during a transfer'

# blocked where it cannot see the socket, were it not for poll
mkfifo "$W/full"
exec {hold}<>"$W/full"
OUT=$W/full recv block
running block
killed s 9 r 'peer went away'
exec {hold}>&-
IN=$W/fifo send block
recv block
exec {pen}>"$W/fifo"
nap 0.3
killed r 9 s 'peer went away'
exec {pen}>&-
rm -f "$XDG_RUNTIME_DIR/towpin/block.lock"
test_end 'a side that waits for its file notices too'

start d "$TOW" demo --size 300M --runs 9
nap 0.5
kill "${pids[d]}"
exits d 1
eq 'left in TMPDIR' "$(ls -d "$W"/tow-demo* 2>/dev/null)" ''
test_end 'a demo that is stopped'

# ---- limits ----

# finding leaks takes descriptors of its own
asan=${ASAN_OPTIONS-}
export ASAN_OPTIONS=$asan:detect_leaks=0
# The one with few descriptors ends by itself, well or with a message.
# shellcheck disable=SC2086	# the words of a command line
nofile() {	# LIMIT COMMAND-LINE OTHER-COMMAND-LINE
	local rc
	start few bash -c "ulimit -n $1; exec \"\$@\"" - "$TOW" $2
	start many "$TOW" $3
	finish few $LIMIT
	rc=$?
	case $rc in
	0)	good=$((good + 1)) ;;
	1)	complains few '' ;;
	# the dynamic loader needs descriptors too
	127)	[ "$1" = 3 ] || bad "$1: $(<"$W/few.err")" ;;
	*)	bad "$2 with $1: exit status $rc: $(<"$W/few.err")" ;;
	esac
	[ $rc = 0 ] || kill "${pids[many]}" 2>/dev/null
	finish many $LIMIT
	case $? in
	0 | 1 | 143) ;;		# 143: before it had its handlers
	*)	bad "$3: $(<"$W/many.err")" ;;
	esac
}
good=0
for n in 3 4 5 6 7 8 9 10 12 14 16 18 20; do
	nofile $n 'recv nofile' "send nofile $W/in"
	nofile $n "send nofile $W/in" 'recv nofile'
done
[ $good -ge 2 ] || bad "only $good were good"
empty_dir
test_end 'RLIMIT_NOFILE'
export ASAN_OPTIONS=$asan

if [ "$provider" != kmod ]; then
	skip 'RLIMIT_MEMLOCK' 'only the kernel module pins'
elif ! setpriv --bounding-set -ipc_lock true 2>/dev/null; then
	skip 'RLIMIT_MEMLOCK' 'cannot drop CAP_IPC_LOCK'
else
	limited() {	# KIB ID COMMAND...
		local kib=$1 id=$2
		shift 2
		start "$id" bash -c "ulimit -l $kib; exec setpriv \
			--inh-caps -ipc_lock --bounding-set -ipc_lock \"\$@\"" \
			- "$@"
	}
	limited 64 s "$TOW" send memlock "$W/in"
	exits s 1
	complains s 'ulimit -l'
	recv memlock f
	limited 8192 s "$TOW" send --json memlock "$W/data"
	exits s 0
	exits r 0
	same f "$W/data"
	[ "$(value "$W/s.out" slots)" -lt 8 ] || bad 'all slots?'
	empty_dir f
	limited 8192 s "$TOW" send --slots 8 memlock "$W/data"
	exits s 1
	complains s 'ulimit -l'
	test_end 'RLIMIT_MEMLOCK'
fi

# ---- peers that break the rules ----

# What tow recv says to each mode; a mode that is not here fails the test.
declare -A says=(
	[vanish_at_once]='peer went away' [empty]='peer went away'
	[garbage]='does not speak' [short]='does not speak'
	[huge]='wrong size' [version]='protocol version 7'
	[type_unknown]='unknown type 77' [type_zero]='unknown type 0'
	[hello_truncated]='wrong size' [hello_long]='wrong size'
	[fds_none]='with 0 descriptors' [fds_few]='with 3 descriptors'
	[fds_many]='with 5 descriptors' [fds_flood]='with 253 descriptors'
	[slots_zero]='0 slots' [slots_huge]='4294967295 slots'
	[slot_size_zero]='of 0 bytes' [slot_size_odd]='of 8193 bytes'
	[slot_size_wraps]='slots of' [provider]='provider unknown'
	[payload_small]='payload buffer is too small'
	[control_small]='control buffer is too small'
	[control_readonly]='lacks a right'
	[payload_device]='cannot import the payload'
	[payload_file]='cannot import the payload'
	[payload_shrinks]='cannot import the payload'
	[control_shrinks]='cannot import the control'
	[event_pipe]='not an eventfd' [event_file]='not an eventfd'
	[end_first]='wrong time' [hello_twice]='wrong time'
	[ready_back]='wrong time' [end_fds]='with 2 descriptors'
	[end_short]='wrong size' [length_big]='8193 bytes in a slot'
	[length_max]='4294967295 bytes in a slot'
	[length_zero]='0 bytes in a slot' [ready_wild]='ready 12345'
	[ready_wild_later]='ready 18446744073709551615'
	[crc_wrong]='damaged' [end_length_wrong]='damaged'
	[end_chunks_many]='damaged' [end_early]='damaged'
	[end_twice]='damaged'
	[abort]='could not read its input' [abort_wild]='gave up'
	[vanish]='peer went away' [vanish_later]='peer went away'
	[vanish_jammed]='peer went away' [silent]='does not speak'
)
for mode in $("$HOSTILE_PEER" send list); do
	recv hostile --timeout 1 f
	start h "$HOSTILE_PEER" send hostile "$mode"
	if [ "$mode" = good ]; then
		exits r 0
		exits h 0
		head -c 32 /dev/zero | cmp -s - f || bad 'good: wrong data'
		empty_dir f
	else
		exits r 1
		complains r "${says[$mode]-(mode unknown to the test)}"
		exits h 0
		empty_dir
	fi
	no_names
	test_end "recv from a hostile sender: $mode"
done

declare -A says=(
	[vanish_at_once]='the last receiver left before'
	[garbage]='does not speak' [version]='protocol version 2'
	[ready_long]='wrong size' [ready_fds]='with 1 descriptors'
	[verdict_first]='wrong time' [ready_twice]='wrong time'
	[verdict_early]='wrong time' [credit_wild]='credit 999'
	[refuse]='it uses the other provider'
	[abort]='could not write its output' [vanish]='peer went away'
	[vanish_jammed]='peer went away' [verdict_none]='peer went away'
	[verdict_crc]='did not get what was sent'
	[verdict_length]='did not get what was sent'
	[verdict_bad]='did not get what was sent' [silent]='does not answer'
)
for mode in $("$HOSTILE_PEER" recv list); do
	start h "$HOSTILE_PEER" recv hostile "$mode"
	listening hostile
	send hostile --timeout 1 "$W/data"
	if [ "$mode" = good ]; then
		exits s 0
	else
		exits s 1
		complains s "${says[$mode]-(mode unknown to the test)}"
	fi
	exits h 0
	test_end "send to a hostile receiver: $mode"
done

echo "1..$count"
[ $failed = 0 ]

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# What a program can rely on: exported names, the header by itself, layouts,
# manual pages and their examples. Prints TAP.
#
# usage: abi.sh BUILD   (from the top of the source tree, after the build)

set -u
build=${1:?usage: abi.sh BUILD}
here=selftests/lib
so=$build/lib/libtowpin.so.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
read -ra cc <<<"${CC:-cc}"
read -ra cxx <<<"${CXX:-c++}"
nr=0
failed=0

# result STATUS NAME: one line of TAP, with what was said on the way.
result() {
	nr=$((nr + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $nr - $2"
	else
		echo "not ok $nr - $2"
		sed 's/^/# /' "$work/log"
		failed=1
	fi
}

check() {
	local name=$1

	shift
	"$@" >"$work/log" 2>&1 </dev/null
	result $? "$name"
}

skip() {
	nr=$((nr + 1))
	echo "ok $nr - $1 # SKIP $2"
}

exported() {
	nm -D --defined-only "$so" | awk '$2 != "A" { print $3 }' |
		sed 's/@@TOWPIN_0.1$//' | sort
}

symbols_match() {
	diff -u "$here/libtowpin.symbols" <(exported)
}

# The same in a static link: an inner name must not clash with the program's.
static_names() {
	diff -u "$here/libtowpin.symbols" \
		<(nm -g --defined-only "$build/lib/libtowpin.a" |
		  awk 'NF == 3 { print $3 }' | sort)
}

declared() {
	diff -u "$here/libtowpin.symbols" \
		<(grep -ohE '\btow_[a-z0-9_]+\(' lib/towpin.h | tr -d '(' |
		  grep -vE '^tow_(prep_|op_)' | sort -u)
}

soname() {
	readelf -d "$so" >"$work/dynamic"
	grep -q 'soname: \[libtowpin.so.0\]' "$work/dynamic" || return 1
	# libc alone: nothing that a minimal system lacks
	! grep NEEDED "$work/dynamic" | grep -vE 'libc\.so|ld-linux'
}

strict=(-Wall -Wextra -pedantic -Werror -fsyntax-only -Ilib)

header_c() {
	echo '#include "towpin.h"' >"$work/only.c"
	"${cc[@]}" -std=c11 "${strict[@]}" "$work/only.c"
}

header_cxx() {
	echo '#include "towpin.h"' >"$work/only.cc"
	"${cxx[@]}" -std=c++17 "${strict[@]}" "$work/only.cc"
}

layout() {
	"${cc[@]}" "$@" -std=c11 "${strict[@]}" "$here/abi_layout.c"
}

# The page itself, or the page that it is a link to.
page_of() {
	if [ -f "$build/man/$1.3" ]; then
		echo "$build/man/$1.3"
	else
		awk -v "name=$1.3" -v "dir=$build/man/" \
			'$1 == name { print dir $2 }' "$build/man/links"
	fi
}

pages_exist() {
	local name page status=0

	while read -r name; do
		page=$(page_of "$name")
		if [ -z "$page" ] || ! grep -q "$name" "$page"; then
			echo "no page for $name"
			status=1
		fi
	done < <(cat "$here/libtowpin.symbols"
		 grep -oE '\btow_(prep|op)_[a-z0-9_]+\(' lib/towpin.h |
			tr -d '(' | sort -u)
	return "$status"
}

# What is declared and what the pages show must be the same text.
synopses_match() {
	tr -d '\n' <lib/towpin.h | tr -s ' \t' ' ' >"$work/header"
	local page proto status=0

	for page in lib/man/*.3.scd; do
		while read -r proto; do
			if ! grep -qF -- "${proto%;}" "$work/header"; then
				echo "$page: not in the header: $proto"
				status=1
			fi
		done < <(sed -n '/^# SYNOPSIS/,/^# DESCRIPTION/p' "$page" |
			grep -v '^```' | grep -v '^#' | tr -d '\n' |
			tr -s ' \t' ' ' | sed 's/;/;\n/g' |
			sed 's/^ *//' | grep 'tow_.*(.*);')
	done
	return "$status"
}

lint_pages() {
	mandoc -T lint -W error "$build"/man/tow*.[37]
}

# example PAGE HOW FLAGS...: the program in the page, built and run.
example() {
	local page=$1 how=$2

	shift 2
	# shellcheck disable=SC2016 # the backquotes are those of the page
	sed -n '/^# EXAMPLE/,/^# /{/^```$/,/^```$/{/^```$/!p}}' "$page" \
		>"$work/example.c"
	"${cc[@]}" -std=c11 -Wall -Wextra -Werror -Ilib "$work/example.c" \
		-o "$work/example" "$@" || return 1
	[ "$how" = build ] ||
		TOW_PROVIDER=user LD_LIBRARY_PATH=$build/lib "$work/example"
}

check "exported symbols" symbols_match
check "declared functions are exported" declared
check "names in the static library" static_names
check "soname and dependencies" soname
check "header alone, C11" header_c
if "${cxx[@]}" --version >/dev/null 2>&1; then
	check "header alone, C++17" header_cxx
else
	skip "header alone, C++17" "no C++ compiler"
fi
check "layouts, 64-bit" layout
echo '#include <stddef.h>' >"$work/m32.c"
if "${cc[@]}" -m32 -fsyntax-only "$work/m32.c" 2>/dev/null; then
	check "layouts, 32-bit" layout -m32
else
	skip "layouts, 32-bit" "no 32-bit headers"
fi
check "a manual page for every name" pages_exist
check "synopses are those of the header" synopses_match
if command -v mandoc >/dev/null; then
	check "manual pages are well formed" lint_pages
else
	skip "manual pages are well formed" "no mandoc"
fi
for page in lib/man/*.scd; do
	grep -q '^# EXAMPLE' "$page" || continue
	name=$(basename "$page" .scd)
	check "example of $name, shared" example "$page" run \
		-L"$build/lib" -ltowpin
	check "example of $name, static" example "$page" run \
		"$build/lib/libtowpin.a" -pthread
done
echo "1..$nr"
exit $failed

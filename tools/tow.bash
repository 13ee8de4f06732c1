# SPDX-License-Identifier: GPL-2.0-only
# Completion of tow for bash.

_tow()
{
	local cur=$2 prev=$3 cmd=${COMP_WORDS[1]-} dir words=

	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W \
			'info send recv demo --help --version' -- "$cur")
		return
	fi
	case $prev in
	-t | --timeout | --slots | --slot-size | -s | --size | -r | --runs)
		return
		;;
	esac
	case $cmd in
	info) words='--json' ;;
	send) words='--timeout --slots --slot-size --any-user --json --quiet' ;;
	recv) words='--timeout --force --sync --any-user --json --quiet' ;;
	demo) words='--size --runs --json' ;;
	esac
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$words --help" -- "$cur")
		return
	fi
	# the names of the receivers that wait, then files
	if [ "$cmd" = send ] && [ "$COMP_CWORD" -eq 2 ]; then
		dir=${XDG_RUNTIME_DIR:+$XDG_RUNTIME_DIR/towpin}
		dir=${dir:-/run/towpin}
		words=$(cd "$dir" 2>/dev/null && compgen -G '*.sock')
		mapfile -t COMPREPLY < <(compgen -W "${words//.sock/}" -- "$cur")
		return
	fi
	mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}

complete -o filenames -F _tow tow

# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of the command tow.
#
# Invariants: the sanitized build has a directory of its own below $(O); no
# test is run by "all".

HOSTILE_PEER := $(O)/selftests/tools/hostile_peer

.PHONY: tools-tests check-tools check-tools-sanitize lint-tools
tools-tests: $(HOSTILE_PEER)

$(HOSTILE_PEER): selftests/tools/hostile_peer.c $(O)/lib/libtowpin.a
	@mkdir -p $(@D)
	$(CC) $(TOW_CFLAGS) -Itools $(LDFLAGS) -o $@ $^ -pthread

check-tools: $(TOW_BIN) $(HOSTILE_PEER)
	TOW=$(TOW_BIN) HOSTILE_PEER=$(HOSTILE_PEER) selftests/tools/tow.sh

# In a make of its own: every object is built anew with the sanitizers.
TOW_SANITIZE := -O1 -g -fsanitize=address,undefined -fno-omit-frame-pointer \
	-fno-sanitize-recover=all
check-tools-sanitize:
	+ASAN_OPTIONS=exitcode=99 $(MAKE) -f $(firstword $(MAKEFILE_LIST)) \
		O=$(O)/sanitize CFLAGS='$(TOW_SANITIZE)' check-tools

lint-tools: tools-man
	shellcheck selftests/tools/tow.sh
	shellcheck -s bash tools/tow.bash
	mandoc -T lint -W error $(TOW_MAN)

-include $(HOSTILE_PEER).d

# SPDX-License-Identifier: GPL-2.0-only
#
# The tests: what is built for them, and `make check`.

KSELFTEST := $(TOWPIN_CACHE)/linux-source-6.12/tools/testing/selftests
MODULE_TESTS := abi buffer mem queue lifecycle fault vivid rdma workload
# 32-bit callers on a 64-bit kernel see the same interface.
MODULE_TESTS32 := abi mem queue
MODULE_TEST_BIN := $(MODULE_TESTS:%=$(O)/selftests/module/%) \
		   $(MODULE_TESTS32:%=$(O)/selftests/module/%-32)
LDLIBS_buffer := -luring
LDLIBS_rdma := -libverbs

# The harness is the kernel's, with its own idea of warnings.
MODULE_TEST_CFLAGS = -std=gnu11 -Wall -Wno-unused-parameter -Werror -O2 -g \
		     -D_GNU_SOURCE -Iuapi -isystem $(KSELFTEST) -MMD -MP -pthread

$(O)/selftests/module/%-32: selftests/module/%.c
	@mkdir -p $(@D)
	$(CC) -m32 $(MODULE_TEST_CFLAGS) -MF $@.d -o $@ $< $(LDLIBS_$*)

$(O)/selftests/module/%: selftests/module/%.c
	@mkdir -p $(@D)
	$(CC) $(MODULE_TEST_CFLAGS) -MF $@.d -o $@ $< $(LDLIBS_$*)

-include $(MODULE_TEST_BIN:%=%.d)

.PHONY: module-tests
module-tests: $(MODULE_TEST_BIN)

include $(wildcard selftests/*/*-tests.mk selftests/bench/bench.mk)

.PHONY: tests
tests: module-tests lib-tests tools-tests bench-build

# SPDX-License-Identifier: GPL-2.0-only
#
# Benchmarks: bench-build builds them, bench runs them and prints two tables;
# BENCH_KERNEL chooses the test kernel.
#
# Invariant: nothing here is run by "all"; results stay in $(O)/selftests/bench.

BENCH_KERNEL ?= 6.12
BENCH_O := $(O)/selftests/bench
BENCH_PROGS := $(BENCH_O)/icount $(BENCH_O)/host
BENCH_icount := icount.o icount_cases.o stats.o
BENCH_host := host.o host_copy.o stats.o

.PHONY: bench bench-build
bench-build: $(BENCH_PROGS)

bench: bench-build kmod
	selftests/bench/run -k $(BENCH_KERNEL) \
		--json $(BENCH_O)/icount-$(BENCH_KERNEL).json $(O)
	@echo
	$(BENCH_O)/host --json $(BENCH_O)/host.json

$(BENCH_O)/%.o: selftests/bench/%.c
	@mkdir -p $(@D)
	$(CC) $(TOW_CFLAGS) -c $< -o $@

$(BENCH_O)/icount: $(BENCH_icount:%=$(BENCH_O)/%)
$(BENCH_O)/host: $(BENCH_host:%=$(BENCH_O)/%)
$(BENCH_PROGS): $(O)/lib/libtowpin.a
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread $(filter %.o,$^) $(filter %.a,$^) \
		-o $@ -ljson-c

-include $(wildcard $(BENCH_O)/*.d)

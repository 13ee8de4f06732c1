# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# Tests of libtowpin: lib-tests builds them, check-lib runs them here,
# check-lib-sanitize runs them under the sanitizers.
#
# Invariant: each variant, sanitized ones too, is the same sources compiled
# once more, in a folder of its own.

LIBT_COMMON := common.c
LIBT_LIB := test_lib.c t_open.c t_buf.c t_share.c t_mem.c t_op.c t_errno.c \
	    t_wait.c t_event.c t_thread.c
LIBT_USER := test_user.c

LIBT_O := $(O)/selftests
LIBT_obj = $(patsubst %.c,$(1)/obj/%.o,$(2) $(LIBT_COMMON))
LIBT_PROGS := $(LIBT_O)/tow-lib-test $(LIBT_O)/tow-user-test

.PHONY: lib-tests check-lib check-lib-sanitize
lib-tests: $(LIBT_PROGS)

$(LIBT_O)/obj/%.o: selftests/lib/%.c
	@mkdir -p $(@D)
	$(CC) $(TOW_CFLAGS) -pthread -c $< -o $@

# Shared: what the version map hides, the tests must not need.
$(LIBT_O)/tow-lib-test: $(call LIBT_obj,$(LIBT_O),$(LIBT_LIB)) \
			$(O)/lib/libtowpin.so
	$(CC) $(CFLAGS) -pthread $(filter %.o,$^) -o $@ -L$(O)/lib -ltowpin \
		-lcmocka -Wl,-rpath,'$$ORIGIN/../lib'

$(LIBT_O)/tow-user-test: $(call LIBT_obj,$(LIBT_O),$(LIBT_USER)) \
			 $(LIB_OBJS)
	$(CC) $(CFLAGS) -pthread $^ -o $@ -lcmocka

check-lib: lib-tests lib lib-man
	TOW_PROVIDER=user $(LIBT_O)/tow-lib-test
	$(LIBT_O)/tow-user-test
	CC='$(CC)' selftests/lib/abi.sh $(O)

LIBT_SAN_address := -fsanitize=address,undefined -fno-sanitize-recover=all
LIBT_SAN_thread := -fsanitize=thread
# A forked child of a program with threads starts some of its own here.
LIBT_ENV := TSAN_OPTIONS='die_after_fork=0 halt_on_error=1' \
	    ASAN_OPTIONS=detect_stack_use_after_return=1 TOW_PROVIDER=user

define LIBT_SANITIZED
$(LIBT_O)/$(1)/obj/%.o: selftests/lib/%.c
	@mkdir -p $$(@D)
	$$(CC) $$(TOW_CFLAGS) $$(LIBT_SAN_$(1)) -pthread -c $$< -o $$@

$(LIBT_O)/$(1)/obj/lib/%.o: lib/%.c
	@mkdir -p $$(@D)
	$$(CC) $$(TOW_CFLAGS) $$(LIB_CFLAGS) $$(LIBT_SAN_$(1)) -c $$< -o $$@

$(LIBT_O)/$(1)/tow-lib-test: \
		$$(call LIBT_obj,$(LIBT_O)/$(1),$$(LIBT_LIB)) \
		$(LIB_SRCS:%.c=$(LIBT_O)/$(1)/obj/lib/%.o)
	$$(CC) $$(CFLAGS) $$(LIBT_SAN_$(1)) -pthread $$^ -o $$@ -lcmocka

$(LIBT_O)/$(1)/tow-user-test: \
		$$(call LIBT_obj,$(LIBT_O)/$(1),$$(LIBT_USER)) \
		$(LIB_SRCS:%.c=$(LIBT_O)/$(1)/obj/lib/%.o)
	$$(CC) $$(CFLAGS) $$(LIBT_SAN_$(1)) -pthread $$^ -o $$@ -lcmocka

.PHONY: check-lib-$(1)
check-lib-$(1): $(LIBT_O)/$(1)/tow-lib-test $(LIBT_O)/$(1)/tow-user-test
	$(LIBT_ENV) $(LIBT_O)/$(1)/tow-lib-test
	$(LIBT_ENV) $(LIBT_O)/$(1)/tow-user-test

check-lib-sanitize: check-lib-$(1)
-include $(wildcard $(LIBT_O)/$(1)/obj/*.d $(LIBT_O)/$(1)/obj/lib/*.d)
endef
$(eval $(call LIBT_SANITIZED,address))
$(eval $(call LIBT_SANITIZED,thread))

-include $(wildcard $(LIBT_O)/obj/*.d)

// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * tow-lib-test: the whole library against one provider, that of $TOW_PROVIDER
 * (default: user). $TOW_TEST_SEED repeats a run, $TOW_TEST_DIVISOR shortens it,
 * $TOW_TEST_TIMEOUT is in seconds, $TOW_TEST_FILTER a pattern of test names.
 */
#include "test.h"

static struct CMUnitTest all[256];
static size_t nr_all;

static void add(const struct CMUnitTest *tests, size_t n)
{
	if (nr_all + n > ARRAY_LEN(all))
		abort();
	memcpy(all + nr_all, tests, n * sizeof(*tests));
	nr_all += n;
}

int main(void)
{
	const char *timeout = getenv("TOW_TEST_TIMEOUT");
	const char *filter = getenv("TOW_TEST_FILTER");

	setvbuf(stdout, NULL, _IOLBF, 0);
	setenv("TOW_PROVIDER", "user", 0);
	alarm(timeout ? (unsigned int)atoi(timeout) : 120);

	add(open_tests, nr_open_tests);
	add(buf_tests, nr_buf_tests);
	add(share_tests, nr_share_tests);
	add(mem_tests, nr_mem_tests);
	add(op_tests, nr_op_tests);
	add(errno_tests, nr_errno_tests);
	add(wait_tests, nr_wait_tests);
	add(event_tests, nr_event_tests);
	add(thread_tests, nr_thread_tests);

	cmocka_set_message_output(CM_OUTPUT_TAP);
	if (filter)
		cmocka_set_test_filter(filter);
	printf("# provider: %s\n", getenv("TOW_PROVIDER"));
	rnd();
	/* One group: each has a plan line, and TAP allows one. */
	return !!_cmocka_run_group_tests("libtowpin", all, nr_all, NULL, NULL);
}

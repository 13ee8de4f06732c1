// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Opening, closing, and what a context tells about itself. */
#include "test.h"

#include <fcntl.h>
#include <sys/resource.h>

static void defaults(void **state)
{
	struct tow_info info = { .size = sizeof(info) };
	const char *provider = getenv("TOW_PROVIDER");
	struct rlimit lim;
	struct tow_ctx *ctx;

	(void)state;
	ok(tow_open(&ctx, NULL));
	ok(tow_info(ctx, &info));
	assert_int_equal(info.size, sizeof(info));
	assert_int_equal(info.entries, 256);
	assert_int_equal(info.inflight, 0);
	assert_int_equal(info.max_length, 1ull << 40);
	assert_int_equal(info.max_handles, 65535);
	assert_int_equal(info.max_eventfds, 4096);
	assert_true(info.engines & 1u << TOW_ENGINE_INLINE);
	assert_true(info.engines & 1u << TOW_ENGINE_CPU);

	getrlimit(RLIMIT_MEMLOCK, &lim);
	assert_true(info.memlock == (lim.rlim_cur == RLIM_INFINITY ?
				     UINT64_MAX : lim.rlim_cur));

	/* Why not the module: said unless it is the module. */
	if (info.provider == TOW_PROVIDER_KMOD) {
		assert_string_equal(info.reason, "");
	} else {
		assert_int_equal(info.inline_max, 16384);
		assert_string_not_equal(info.reason, "");
		assert_null(strchr(info.reason, '\n'));
	}
	if (!strcmp(provider, "user"))
		assert_int_equal(info.provider, TOW_PROVIDER_USER);
	if (!strcmp(provider, "kmod"))
		assert_int_equal(info.provider, TOW_PROVIDER_KMOD);
	tow_close(ctx);

	tow_close(NULL);
	assert_true(strlen(tow_version()) > 0);
}

static void options(void **state)
{
	struct {
		struct tow_open_opts o;
		char newer[8];
	} x;
	struct tow_open_opts o = { .size = sizeof(o) };
	struct tow_ctx *ctx;

	(void)state;
	fails(tow_open(NULL, NULL), EINVAL);
	o.size = sizeof(o) - 1;
	fails(tow_open(&ctx, &o), EINVAL);
	o = (struct tow_open_opts) { .size = sizeof(o), .provider = 3 };
	fails(tow_open(&ctx, &o), EINVAL);
	o = (struct tow_open_opts) { .size = sizeof(o), .entries = 4097 };
	fails(tow_open(&ctx, &o), EINVAL);
	o = (struct tow_open_opts) { .size = sizeof(o), .workers = 257 };
	fails(tow_open(&ctx, &o), EINVAL);

	/* A caller newer than the library */
	memset(&x, 0, sizeof(x));
	x.o.size = sizeof(x);
	ok(tow_open(&ctx, &x.o));
	tow_close(ctx);
	x.newer[7] = 1;
	fails(tow_open(&ctx, &x.o), E2BIG);
}

static void entries(void **state)
{
	static const unsigned int n[] = { 1, 3, 4096 };
	struct tow_info info = { .size = sizeof(info) };
	struct tow_ctx *ctx;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(n); i++) {
		ctx = open_ctx(n[i]);
		ok(tow_info(ctx, &info));
		assert_int_equal(info.entries, n[i]);
		tow_close(ctx);
	}
}

static void info_size(void **state)
{
	struct tow_ctx *ctx = open_ctx(1);
	struct {
		struct tow_info i;
		char newer[8];
	} x;

	(void)state;
	fails(tow_info(ctx, NULL), EINVAL);
	fails(tow_info(NULL, &x.i), EINVAL);
	x.i.size = sizeof(x.i) - 1;
	fails(tow_info(ctx, &x.i), EINVAL);
	memset(&x, 0xff, sizeof(x));
	x.i.size = sizeof(x);
	ok(tow_info(ctx, &x.i));
	assert_int_equal(x.i.size, sizeof(x));
	assert_int_equal(x.i.entries, 1);
	assert_int_equal(x.newer[0], 0);
	assert_int_equal(x.newer[7], 0);
	tow_close(ctx);
}

static void environment(void **state)
{
	struct tow_open_opts user = {
		.size = sizeof(user),
		.provider = TOW_PROVIDER_USER,
	};
	struct tow_info info = { .size = sizeof(info) };
	char *former = strdup(getenv("TOW_PROVIDER"));
	struct tow_ctx *ctx;

	(void)state;
	setenv("TOW_PROVIDER", "cloud", 1);
	fails(tow_open(&ctx, NULL), EINVAL);
	/* Not asked when the program chose. */
	ok(tow_open(&ctx, &user));
	ok(tow_info(ctx, &info));
	assert_int_equal(info.provider, TOW_PROVIDER_USER);
	assert_non_null(strstr(info.reason, "the program"));
	tow_close(ctx);

	setenv("TOW_PROVIDER", "user", 1);
	ok(tow_open(&ctx, NULL));
	ok(tow_info(ctx, &info));
	assert_int_equal(info.provider, TOW_PROVIDER_USER);
	assert_non_null(strstr(info.reason, "$TOW_PROVIDER"));
	tow_close(ctx);

	setenv("TOW_PROVIDER", "", 1);
	ok(tow_open(&ctx, NULL));
	tow_close(ctx);
	setenv("TOW_PROVIDER", former, 1);
	free(former);
}

static void without_module(void **state)
{
	struct tow_open_opts kmod = {
		.size = sizeof(kmod),
		.provider = TOW_PROVIDER_KMOD,
	};
	struct tow_info info = { .size = sizeof(info) };
	char *former = strdup(getenv("TOW_PROVIDER"));
	struct tow_ctx *ctx;

	(void)state;
	if (!access("/dev/towpin", F_OK)) {
		free(former);
		skip();
	}
	fails(tow_open(&ctx, &kmod), ENOENT);
	setenv("TOW_PROVIDER", "auto", 1);
	ok(tow_open(&ctx, NULL));
	ok(tow_info(ctx, &info));
	assert_int_equal(info.provider, TOW_PROVIDER_USER);
	assert_non_null(strstr(info.reason, "modprobe towpin"));
	tow_close(ctx);
	setenv("TOW_PROVIDER", former, 1);
	free(former);
}

/* Mappings of buffers and records. */
static int count_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		n += strstr(line, "/memfd:towpin") || strstr(line, "/dmabuf") ||
		     strstr(line, "/dev/towpin");
	fclose(file);
	return n;
}

static void nothing_left(void **state)
{
	int fds = count_dir("/proc/self/fd");
	int threads = count_dir("/proc/self/task");
	unsigned int i, k;

	(void)state;
	for (i = 0; i < rounds(100); i++) {
		struct tow_ctx *ctx = open_ctx(1 + i);
		struct tow_buf *buf = NULL;
		void *map;

		for (k = 0; k < 2 + i % 5; k++)
			buf = new_buf(ctx, KIB(8), k & 1 ? &map : NULL);
		if (i % 3 == 0)
			tow_buf_destroy(buf);
		ok(tow_fd(ctx));
		if (k)
			assert_true(count_mappings() > 0);
		tow_close(ctx);
	}
	assert_int_equal(count_dir("/proc/self/fd"), fds);
	assert_int_equal(count_mappings(), 0);
	/* A joined thread may show for a moment. */
	for (i = 0; i < 100 && count_dir("/proc/self/task") != threads; i++)
		usleep(10000);
	assert_int_equal(count_dir("/proc/self/task"), threads);
}

const struct CMUnitTest open_tests[] = {
	cmocka_unit_test(defaults),
	cmocka_unit_test(options),
	cmocka_unit_test(entries),
	cmocka_unit_test(info_size),
	cmocka_unit_test(environment),
	cmocka_unit_test(without_module),
	cmocka_unit_test(nothing_left),
};
const size_t nr_open_tests = ARRAY_LEN(open_tests);

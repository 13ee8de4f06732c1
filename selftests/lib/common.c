// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Helpers of the library's tests; see test.h. */
#include "test.h"

#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

/*
 * In place of cmocka's own, which it uses for its TAP: version 1.1.5 says "not
 * ok" of a test that was skipped, where TAP wants "ok".
 */
void print_message(const char *const format, ...)
{
	const char *f = format;
	va_list args;

	if (!strncmp(f, "not ok ", 7) && strstr(f, "# SKIP"))
		f = "ok %u # SKIP %s\n";
	va_start(args, format);
	vprintf(f, args);
	va_end(args);
}

int check_ok(int ret, const char *expr, const char *file, int line)
{
	if (ret < 0) {
		print_error("%s is -%s\n", expr, strerrorname_np(-ret));
		_fail(file, line);
	}
	return ret;
}

void check_fails(int ret, int err, const char *expr, const char *file, int line)
{
	if (ret == -err)
		return;
	if (ret < 0)
		print_error("%s is -%s, not -%s\n", expr,
			    strerrorname_np(-ret), strerrorname_np(err));
	else
		print_error("%s is %d, not -%s\n", expr, ret,
			    strerrorname_np(err));
	_fail(file, line);
}

static uint64_t rnd_state;

uint64_t rnd(void)
{
	if (!rnd_state) {
		const char *seed = getenv("TOW_TEST_SEED");

		rnd_state = seed ? strtoull(seed, NULL, 0) : now_ns();
		rnd_state |= 1;
		printf("# TOW_TEST_SEED=%llu\n",
		       (unsigned long long)rnd_state);
	}
	rnd_state ^= rnd_state >> 12;
	rnd_state ^= rnd_state << 25;
	rnd_state ^= rnd_state >> 27;
	return rnd_state * 0x2545f4914f6cdd1dull;
}

uint64_t rnd_below(uint64_t n)
{
	return rnd() % n;
}

void rnd_bytes(void *data, size_t n)
{
	unsigned char *p = data;
	uint64_t v;

	for (; n >= 8; n -= 8, p += 8) {
		v = rnd();
		memcpy(p, &v, 8);
	}
	v = rnd();
	memcpy(p, &v, n);
}

unsigned int rounds(unsigned int n)
{
	const char *text = getenv("TOW_TEST_DIVISOR");
	unsigned int divisor = text ? (unsigned int)atoi(text) : 1;

	if (SANITIZED)
		divisor *= 4;
	return divisor && n / divisor ? n / divisor : 1;
}

struct tow_ctx *open_ctx(unsigned int entries)
{
	struct tow_open_opts opts = {
		.size = sizeof(opts),
		.entries = entries,
		.workers = 3,
		.inline_max = 4096,
	};
	struct tow_ctx *ctx;

	ok(tow_open(&ctx, &opts));
	return ctx;
}

static struct tow_info get_info(struct tow_ctx *ctx)
{
	struct tow_info info = { .size = sizeof(info) };

	ok(tow_info(ctx, &info));
	return info;
}

bool on_kmod(struct tow_ctx *ctx)
{
	return get_info(ctx).provider == TOW_PROVIDER_KMOD;
}

unsigned int inflight(struct tow_ctx *ctx)
{
	return get_info(ctx).inflight;
}

struct tow_result run_ok(struct tow_ctx *ctx, const struct tow_op *op)
{
	struct tow_result res;

	memset(&res, 0xa5, sizeof(res));
	assert_int_equal(ok(tow_run(ctx, op, &res)), 0);
	assert_int_equal(res.status, 0);
	assert_true(res.engine == TOW_ENGINE_INLINE ||
		    res.engine == TOW_ENGINE_CPU);
	return res;
}

struct tow_buf *new_buf(struct tow_ctx *ctx, uint64_t length, void *map)
{
	struct tow_buf *buf;

	ok(tow_buf_create(ctx, length, 0, TOW_NODE_ANY, &buf));
	if (map)
		ok(tow_buf_map(buf, map));
	return buf;
}

/* Bit by bit from the polynomial, into a table: nothing of the library. */
uint32_t model_crc32c(uint32_t crc, const void *data, size_t n)
{
	static uint32_t table[256];
	const unsigned char *p = data;
	unsigned int b, k;

	for (b = 0; !table[255] && b < 256; b++) {
		table[b] = b;
		for (k = 0; k < 8; k++)
			table[b] = table[b] & 1 ? table[b] >> 1 ^ 0x82f63b78 :
						  table[b] >> 1;
	}
	crc = ~crc;
	while (n--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return ~crc;
}

void busy_start(struct busy *busy, struct tow_ctx *ctx, unsigned int n,
		size_t length)
{
	unsigned int i;

	busy->ctx = ctx;
	busy->n = n;
	busy->length = length;
	busy->mem = mmap(NULL, length, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(busy->mem, MAP_FAILED);
	ok(tow_mem_register(ctx, busy->mem, length, 0, &busy->handle));
	for (i = 0; i < n; i++) {
		struct tow_op op;

		tow_prep_crc32c(&op, busy->handle, 0, length, 0);
		assert_int_equal(ok(tow_submit(ctx, &op, 1, &busy->tokens[i])),
				 1);
	}
}

void busy_reap(struct busy *busy)
{
	struct tow_result res;
	unsigned int i;

	for (i = 0; i < busy->n; i++) {
		ok(tow_wait(busy->ctx, busy->tokens[i], TOW_TIMEOUT_NONE,
			    &res));
		assert_int_equal(res.status, 0);
		assert_int_equal(res.bytes, busy->length);
	}
	ok(tow_mem_unregister(busy->ctx, busy->handle));
	busy_free(busy);
}

void busy_free(struct busy *busy)
{
	munmap(busy->mem, busy->length);
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

int count_dir(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

int start_child(void)
{
	int pid = fork();

	if (!pid) {
		/* A child inherits no alarm. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(100);
	}
	return pid;
}

int wait_child(int pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 255;
	return WEXITSTATUS(status);
}

// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Tokens, and the ways to wait for them. */
#include "test.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define MS	1000000ull

static void stale(void **state)
{
	struct tow_ctx *ctx = open_ctx(2);
	struct tow_result res;
	struct tow_op op;
	tow_token token, all[2];
	unsigned int i;
	static const tow_token unknown[] = {
		0, 1, 0xffff, 0x10001, 1ull << 48, UINT64_MAX,
	};

	(void)state;
	for (i = 0; i < ARRAY_LEN(unknown); i++) {
		fails(tow_test(ctx, unknown[i], &res), ENOENT);
		fails(tow_wait(ctx, unknown[i], TOW_TIMEOUT_NONE, &res),
		      ENOENT);
		fails(tow_wait_any(ctx, &unknown[i], 1, TOW_TIMEOUT_NONE, &res),
		      ENOENT);
	}
	tow_prep_nop(&op);
	ok(tow_submit(ctx, &op, 1, &token));
	assert_int_equal(tow_test(ctx, token, &res), 1);
	fails(tow_test(ctx, token, &res), ENOENT);
	ok(tow_submit(ctx, &op, 1, &token));
	assert_int_equal(tow_wait(ctx, token, 0, &res), 0);
	fails(tow_wait(ctx, token, 0, &res), ENOENT);
	ok(tow_submit(ctx, &op, 1, &token));
	assert_int_equal(tow_wait_any(ctx, &token, 1, 0, &res), 0);
	fails(tow_wait_any(ctx, &token, 1, 0, &res), ENOENT);

	/* One stale among good ones: told, and nothing taken. */
	ok(tow_submit(ctx, &op, 1, &all[0]));
	all[1] = token;
	fails(tow_wait_any(ctx, all, 2, TOW_TIMEOUT_NONE, &res), ENOENT);
	assert_int_equal(tow_test(ctx, all[0], &res), 1);
	tow_close(ctx);
}

/* The slot's next operation has another token, always. */
static void generations(void **state)
{
	struct tow_ctx *ctx = open_ctx(1);
	tow_token token, former = 0, first = 0;
	struct tow_op op;
	unsigned int i;

	(void)state;
	tow_prep_nop(&op);
	for (i = 0; i < 70000; i++) {
		ok(tow_submit(ctx, &op, 1, &token));
		assert_int_not_equal(token, former);
		if (former)
			fails(tow_test(ctx, former, NULL), ENOENT);
		if (!first)
			first = token;
		else
			assert_int_not_equal(token, first);
		assert_int_equal(tow_test(ctx, token, NULL), 1);
		former = token;
	}
	fails(tow_test(ctx, first, NULL), ENOENT);
	tow_close(ctx);
}

/* Makes sure that most of them are not complete yet, or gives up. */
static bool start_long(struct busy *busy, struct tow_ctx *ctx, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < 10; i++) {
		busy_start(busy, ctx, n, MIB(8));
		if (inflight(ctx) >= n / 2)
			return true;
		busy_reap(busy);
	}
	return false;
}

/* Never early; late by as much as the machine is busy. */
static void timeouts(void **state)
{
	struct tow_ctx *ctx = open_ctx(128);
	unsigned int i, seen = 0;
	uint64_t start;
	struct busy busy;
	tow_token last;
	int ret;

	(void)state;
	for (i = 0; i < 10 && seen < 8; i++) {
		if (!start_long(&busy, ctx, 32))
			continue;
		last = busy.tokens[busy.n - 1];
		ret = tow_wait(ctx, last, 0, NULL);
		while (ret == -ETIME && seen < 8) {
			start = now_ns();
			ret = tow_wait(ctx, last, 2 * MS, NULL);
			if (ret == -ETIME) {
				seen++;
				assert_true(now_ns() - start >= 2 * MS);
			}
		}
		if (!ret)
			busy.n--;
		else
			assert_int_equal(ret, -ETIME);
		busy_reap(&busy);
	}
	assert_int_equal(seen, 8);
	tow_close(ctx);
}

static void take_complete(struct busy *busy)
{
	int index;

	while (busy->n) {
		index = tow_wait_any(busy->ctx, busy->tokens, busy->n, 0, NULL);
		if (index == -ETIME)
			break;
		ok(index);
		busy->tokens[index] = busy->tokens[--busy->n];
	}
}

static void wait_any(void **state)
{
	struct tow_ctx *ctx = open_ctx(128);
	struct tow_result res;
	tow_token tokens[130];
	struct busy busy;
	struct tow_op op;
	unsigned int seen = 0, i;
	int index;

	(void)state;
	tow_prep_nop(&op);
	ok(tow_submit(ctx, &op, 1, tokens));
	fails(tow_wait_any(ctx, tokens, 0, 0, &res), EINVAL);
	fails(tow_wait_any(ctx, NULL, 1, 0, &res), EINVAL);
	fails(tow_wait_any(ctx, tokens, 129, 0, &res), EINVAL);
	fails(tow_wait_any(NULL, tokens, 1, 0, &res), EINVAL);
	/* The same token twice is one token. */
	tokens[1] = tokens[0];
	assert_int_equal(ok(tow_wait_any(ctx, tokens, 2, 0, &res)), 0);

	/*
	 * It sleeps until the next is complete, and not until the last. Once
	 * could be luck, when it finds one before it sleeps.
	 */
	for (i = 0; i < 10 && seen < 4; i++) {
		if (!start_long(&busy, ctx, 24))
			continue;
		take_complete(&busy);
		if (busy.n) {
			index = ok(tow_wait_any(ctx, busy.tokens, busy.n,
						TOW_TIMEOUT_NONE, &res));
			assert_int_equal(res.bytes, busy.length);
			busy.tokens[index] = busy.tokens[--busy.n];
			seen += inflight(ctx) > 0;
		}
		busy_reap(&busy);
	}
	assert_int_equal(seen, 4);

	/* The one that is complete among those that are not */
	busy_start(&busy, ctx, 32, MIB(4));
	ok(tow_submit(ctx, &op, 1, &tokens[1]));
	tokens[0] = busy.tokens[busy.n - 1];
	index = ok(tow_wait_any(ctx, tokens, 2, TOW_TIMEOUT_NONE, &res));
	if (index == 0) {
		/* The long one was done first after all. */
		busy.n--;
		ok(tow_wait(ctx, tokens[1], 0, NULL));
	} else {
		assert_int_equal(res.bytes, 0);
	}

	/* All of them, one by one, each once */
	while (busy.n) {
		index = ok(tow_wait_any(ctx, busy.tokens, busy.n,
					TOW_TIMEOUT_NONE, &res));
		assert_int_equal(res.bytes, busy.length);
		assert_in_range(index, 0, busy.n - 1);
		busy.tokens[index] = busy.tokens[--busy.n];
	}
	busy_reap(&busy);
	assert_int_equal(inflight(ctx), 0);
	tow_close(ctx);
}

static void on_signal(int sig)
{
	(void)sig;
}

struct pest {
	pthread_t target;
	int stop;
};

static void *pester(void *arg)
{
	struct pest *pest = arg;

	while (!__atomic_load_n(&pest->stop, __ATOMIC_RELAXED)) {
		pthread_kill(pest->target, SIGUSR1);
		usleep(200);
	}
	return NULL;
}

static void signals(void **state)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct tow_ctx *ctx = open_ctx(128);
	struct pest pest = { .target = pthread_self() };
	unsigned char byte = 0;
	struct busy busy;
	pthread_t thread;
	unsigned int i;
	uint32_t h;

	(void)state;
	sigaction(SIGUSR1, &sa, NULL);
	assert_int_equal(pthread_create(&thread, NULL, pester, &pest), 0);
	for (i = 0; i < rounds(4); i++) {
		busy_start(&busy, ctx, 16, MIB(4));
		busy_reap(&busy);
	}
	for (i = 0; i < rounds(200); i++) {
		ok(tow_mem_register(ctx, &byte, 1, 0, &h));
		ok(tow_mem_unregister(ctx, h));
	}
	__atomic_store_n(&pest.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	tow_close(ctx);
}

/* From here on a system call other than exit_group(2) kills the process. */
static int no_system_calls(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog prog = { ARRAY_LEN(code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return -errno;
	return 0;
}

static void quiet_child(void)
{
	struct tow_open_opts opts = { .size = sizeof(opts), .workers = 1 };
	struct tow_result res = { 0 };
	struct tow_ctx *ctx;
	struct tow_buf *buf;
	struct tow_op op;
	tow_token tokens[4];
	int i;

	if (tow_open(&ctx, &opts) ||
	    tow_buf_create(ctx, MIB(1), 0, TOW_NODE_ANY, &buf))
		_exit(2);
	tow_prep_fill(&op, tow_buf_handle(buf), 0, MIB(1), 1);
	for (i = 0; i < 4; i++)
		if (tow_submit(ctx, &op, 1, &tokens[i]) != 1)
			_exit(3);
	/* Complete, but not taken */
	for (i = 0; i < 4; i++) {
		struct tow_info info = { .size = sizeof(info) };

		do {
			tow_info(ctx, &info);
			usleep(1000);
		} while (info.inflight);
	}
	usleep(20000);
	if (no_system_calls())
		_exit(77);
	if (tow_test(ctx, tokens[0], &res) != 1 || res.status)
		_exit(4);
	if (tow_wait(ctx, tokens[1], TOW_TIMEOUT_NONE, &res) || res.status)
		_exit(5);
	if (tow_wait_any(ctx, tokens + 2, 2, TOW_TIMEOUT_NONE, &res) != 0)
		_exit(6);
	if (tow_test(ctx, tokens[2], &res) != -ENOENT)
		_exit(7);
	if (tow_test(ctx, tokens[3], NULL) != 1)
		_exit(8);
	_exit(0);
}

static void no_system_call(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	/* The sanitizers make calls of their own. */
	if (SANITIZED)
		skip();
	pid = start_child();
	if (!pid)
		quiet_child();
	status = wait_child(pid);
	if (status == 77)
		skip();
	assert_int_equal(status, 0);
}

/* Closing leaves memory alone afterwards. */
static void close_in_flight(void **state)
{
	unsigned int i, k;

	(void)state;
	for (i = 0; i < rounds(30); i++) {
		struct tow_ctx *ctx = open_ctx(64);
		unsigned int n = 1 + (unsigned int)rnd_below(40);
		unsigned char *mem = malloc(MIB(1));
		struct tow_buf *buf = new_buf(ctx, MIB(1), NULL);
		struct tow_op op;
		tow_token token;
		uint32_t h;

		ok(tow_mem_register(ctx, mem, MIB(1), 0, &h));
		for (k = 0; k < n; k++) {
			tow_prep_fill(&op, k & 1 ? h : tow_buf_handle(buf), 0,
				      MIB(1), ~0ull);
			ok(tow_submit(ctx, &op, 1, &token));
		}
		if (i & 1)
			usleep((useconds_t)rnd_below(500));
		tow_close(ctx);
		memset(mem, 0, MIB(1));
		if (i < 4)
			usleep(20000);
		for (k = 0; k < MIB(1); k += 64)
			assert_int_equal(mem[k], 0);
		free(mem);
	}
}

/*
 * The user provider cancels what is queued: it does not store its notification,
 * but signals its eventfd. The module's operations are waited for.
 */
static void close_cancels(void **state)
{
	enum { N = 64 };
	struct tow_ctx *ctx = open_ctx(N);
	int fd = eventfd(0, EFD_CLOEXEC);
	int index = ok(tow_eventfd_add(ctx, fd));
	size_t length = MIB(16);
	void *mem = calloc(1, length);
	uint32_t done[N] = { 0 };
	uint64_t signalled = 0;
	bool kmod = on_kmod(ctx);
	uint32_t src, dst;
	tow_token token;
	struct tow_op op;
	unsigned int i, n = 0;

	(void)state;
	ok(tow_mem_register(ctx, mem, length, TOW_REG_READ_ONLY, &src));
	ok(tow_mem_register(ctx, done, sizeof(done), 0, &dst));
	for (i = 0; i < N; i++) {
		tow_prep_crc32c(&op, src, 0, length, 0);
		tow_op_store(&op, dst, 4 * i, 1, 4);
		tow_op_signal(&op, index);
		ok(tow_submit(ctx, &op, 1, &token));
	}
	tow_close(ctx);
	for (i = 0; i < N; i++)
		n += done[i];
	if (kmod)
		assert_int_equal(n, N);
	else
		assert_true(n < N);
	assert_int_equal(read(fd, &signalled, 8), 8);
	assert_int_equal(signalled, N);
	close(fd);
	free(mem);
}

const struct CMUnitTest wait_tests[] = {
	cmocka_unit_test(stale),
	cmocka_unit_test(generations),
	cmocka_unit_test(timeouts),
	cmocka_unit_test(wait_any),
	cmocka_unit_test(signals),
	cmocka_unit_test(no_system_call),
	cmocka_unit_test(close_in_flight),
	cmocka_unit_test(close_cancels),
};
const size_t nr_wait_tests = ARRAY_LEN(wait_tests);

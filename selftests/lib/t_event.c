// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Notification stores, eventfds, and the descriptor of the context. */
#include "test.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

/* What the eventfd counted; waits for the first of it. */
static uint64_t take(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	uint64_t n = 0;

	if (poll(&pfd, 1, 5000) != 1)
		return 0;
	return read(fd, &n, 8) == 8 ? n : 0;
}

static bool readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1 && pfd.revents & POLLIN;
}

static void stores(void **state)
{
	struct tow_ctx *ctx = open_ctx(4);
	unsigned char *map, want[64];
	unsigned char own[64] __attribute__((aligned(8)));
	struct tow_buf *buf;
	struct tow_op op;
	unsigned int i;
	uint32_t h;

	(void)state;
	buf = new_buf(ctx, KIB(64), &map);
	ok(tow_mem_register(ctx, own, sizeof(own), 0, &h));
	for (i = 0; i < rounds(200); i++) {
		unsigned int size = rnd() & 1 ? 4 : 8;
		uint64_t off = rnd_below(64 / size) * size;
		uint64_t value = rnd();
		bool in_buf = rnd() & 1;
		unsigned char *at = in_buf ? map + KIB(60) : own;

		rnd_bytes(at, 64);
		memcpy(want, at, 64);
		/* With data, inline and not, and without */
		if (i % 3)
			tow_prep_fill(&op, tow_buf_handle(buf), 0,
				      i % 3 == 1 ? 8 : KIB(32), value);
		else
			tow_prep_nop(&op);
		if (in_buf)
			tow_op_store(&op, tow_buf_handle(buf), KIB(60) + off,
				     value, size);
		else
			tow_op_store(&op, h, off, value, size);
		run_ok(ctx, &op);
		/* The low bytes: those the value has on this machine. */
		if (size == 4) {
			uint32_t low = (uint32_t)value;

			memcpy(want + off, &low, 4);
		} else {
			memcpy(want + off, &value, 8);
		}
		assert_memory_equal(at, want, 64);
	}
	tow_close(ctx);
}

struct reader {
	const uint32_t *flag;
	const uint64_t *data;
	size_t words;
	unsigned int n;
	uint32_t *ack;
};

/* Who sees the flag must see the data. */
static void *read_side(void *arg)
{
	const struct reader *r = arg;
	unsigned int i;
	size_t k;

	for (i = 1; i <= r->n; i++) {
		while (__atomic_load_n(r->flag, __ATOMIC_ACQUIRE) != i)
			sched_yield();
		for (k = 0; k < r->words; k++)
			if (r->data[k] != i)
				return "stale data";
		__atomic_store_n(r->ack, i, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void store_is_last(void **state)
{
	struct tow_ctx *ctx = open_ctx(4);
	struct tow_buf *src = new_buf(ctx, KIB(64), NULL);
	unsigned char *map;
	struct tow_buf *dst = new_buf(ctx, KIB(68), &map);
	uint32_t ack = 0;
	struct reader r = {
		.flag = (uint32_t *)(map + KIB(64)),
		.data = (uint64_t *)map,
		.words = KIB(64) / 8,
		.n = rounds(300),
		.ack = &ack,
	};
	pthread_t thread;
	void *bad = NULL;
	unsigned int i;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, read_side, &r), 0);
	for (i = 1; i <= r.n; i++) {
		struct tow_op op;

		tow_prep_fill(&op, tow_buf_handle(src), 0, KIB(64), i);
		run_ok(ctx, &op);
		tow_prep_copy(&op, tow_buf_handle(dst), 0, tow_buf_handle(src),
			      0, KIB(64));
		op.hint = i & 1 ? TOW_HINT_NOCACHE : TOW_HINT_NORMAL;
		tow_op_store(&op, tow_buf_handle(dst), KIB(64), i, 4);
		run_ok(ctx, &op);
		while (__atomic_load_n(&ack, __ATOMIC_ACQUIRE) != i &&
		       pthread_tryjoin_np(thread, &bad))
			sched_yield();
		if (__atomic_load_n(&ack, __ATOMIC_ACQUIRE) != i)
			fail_msg("%s", (char *)bad);
	}
	if (i > r.n)
		pthread_join(thread, NULL);
	tow_close(ctx);
}

static void eventfds(void **state)
{
	struct tow_ctx *ctx = open_ctx(16);
	struct tow_buf *buf = new_buf(ctx, MIB(1), NULL);
	int a = eventfd(0, EFD_CLOEXEC), b = eventfd(0, EFD_CLOEXEC);
	int pipes[2], spare, ia, ib, k;
	struct tow_op op;
	uint64_t n;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	fails(tow_eventfd_add(NULL, a), EINVAL);
	fails(tow_eventfd_add(ctx, -1), EBADF);
	fails(tow_eventfd_add(ctx, 1 << 20), EBADF);
	fails(tow_eventfd_add(ctx, pipes[0]), EINVAL);
	fails(tow_eventfd_add(ctx, tow_buf_fd(buf)), EINVAL);
	fails(tow_eventfd_del(NULL, 0), EINVAL);
	fails(tow_eventfd_del(ctx, 0), ENOENT);
	fails(tow_eventfd_del(ctx, -1), ENOENT);
	fails(tow_eventfd_del(ctx, 4096), ENOENT);

	ia = ok(tow_eventfd_add(ctx, a));
	/* The descriptor given is not needed any more. */
	spare = dup(b);
	ib = ok(tow_eventfd_add(ctx, spare));
	close(spare);
	assert_int_not_equal(ia, ib);
	for (k = 0; k < 5; k++) {
		tow_prep_fill(&op, tow_buf_handle(buf), 0, k & 1 ? 8 : MIB(1),
			      1);
		tow_op_signal(&op, ia);
		run_ok(ctx, &op);
	}
	for (n = 0; n < 5; n += take(a))
		;
	assert_int_equal(n, 5);
	assert_false(readable(a));
	assert_false(readable(b));
	tow_op_signal(&op, ib);
	run_ok(ctx, &op);
	assert_int_equal(take(b), 1);
	assert_false(readable(a));

	ok(tow_eventfd_del(ctx, ia));
	fails(tow_eventfd_del(ctx, ia), ENOENT);
	tow_op_signal(&op, ia);
	fails(tow_run(ctx, &op, NULL), ENOENT);
	/* An index comes back. */
	assert_int_equal(ok(tow_eventfd_add(ctx, a)), ia);
	run_ok(ctx, &op);
	assert_int_equal(take(a), 1);
	tow_close(ctx);
	assert_false(readable(a));
	close(a);
	close(b);
	close(pipes[0]);
	close(pipes[1]);
}

/* The signal of an operation in flight comes although its index is gone. */
static void eventfd_deleted(void **state)
{
	struct tow_ctx *ctx = open_ctx(32);
	int fd = eventfd(0, EFD_CLOEXEC);
	struct busy busy;
	struct tow_op op;
	tow_token token;
	int index;

	(void)state;
	index = ok(tow_eventfd_add(ctx, fd));
	busy_start(&busy, ctx, 8, MIB(2));
	tow_prep_crc32c(&op, busy.handle, 0, MIB(2), 0);
	tow_op_signal(&op, index);
	ok(tow_submit(ctx, &op, 1, &token));
	ok(tow_eventfd_del(ctx, index));
	assert_int_equal(take(fd), 1);
	/* Who is woken by it finds the record. */
	assert_int_equal(tow_test(ctx, token, NULL), 1);
	busy_reap(&busy);
	tow_close(ctx);
	close(fd);
}

static void eventfd_saturated(void **state)
{
	struct tow_ctx *ctx = open_ctx(4);
	int fd = eventfd(0, EFD_CLOEXEC);
	uint64_t most = UINT64_MAX - 1;
	struct tow_op op;

	(void)state;
	tow_prep_nop(&op);
	tow_op_signal(&op, ok(tow_eventfd_add(ctx, fd)));
	assert_int_equal(write(fd, &most, 8), 8);
	run_ok(ctx, &op);
	run_ok(ctx, &op);
	assert_true(readable(fd));
	tow_close(ctx);
	close(fd);
}

static void eventfd_all(void **state)
{
	struct rlimit lim;
	struct tow_ctx *ctx;
	unsigned int i;
	int fd;

	(void)state;
	/* The user provider needs a descriptor for each. */
	getrlimit(RLIMIT_NOFILE, &lim);
	lim.rlim_cur = lim.rlim_max;
	setrlimit(RLIMIT_NOFILE, &lim);
	ctx = open_ctx(1);
	if (lim.rlim_cur < 5000 && !on_kmod(ctx)) {
		tow_close(ctx);
		skip();
	}
	fd = eventfd(0, EFD_CLOEXEC);
	for (i = 0; i < 4096; i++)
		assert_in_range(ok(tow_eventfd_add(ctx, fd)), 0, 4095);
	fails(tow_eventfd_add(ctx, fd), ENOSPC);
	ok(tow_eventfd_del(ctx, 1234));
	assert_int_equal(ok(tow_eventfd_add(ctx, fd)), 1234);
	close(fd);
	tow_close(ctx);
}

static void context_fd(void **state)
{
	struct tow_ctx *ctx = open_ctx(32);
	struct tow_buf *buf = new_buf(ctx, KIB(64), NULL);
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	struct tow_op op;
	uint64_t n, sum;
	tow_token tokens[8];
	uint32_t half;
	int fd, ep, i;

	(void)state;
	/* Those before anybody asked count as well. */
	tow_prep_nop(&op);
	for (i = 0; i < 3; i++)
		run_ok(ctx, &op);
	fails(tow_fd(NULL), EINVAL);
	fd = ok(tow_fd(ctx));
	assert_int_equal(tow_fd(ctx), fd);
	for (sum = 0; sum < 3; sum += take(fd))
		;
	assert_int_equal(sum, 3);
	assert_false(readable(fd));

	ep = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev), 0);
	tow_prep_fill(&op, tow_buf_handle(buf), 0, KIB(64), 1);
	for (i = 0; i < 8; i++)
		ok(tow_submit(ctx, &op, 1, &tokens[i]));
	assert_int_equal(epoll_wait(ep, &ev, 1, 5000), 1);
	for (sum = 0; sum < 8; sum += n) {
		n = take(fd);
		if (!n)
			break;
	}
	assert_int_equal(sum, 8);
	assert_false(readable(fd));
	for (i = 0; i < 8; i++)
		assert_int_equal(tow_test(ctx, tokens[i], NULL), 1);

	run_ok(ctx, &op);
	while (!readable(fd))
		;
	assert_int_equal(read(fd, &half, 4), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(read(fd, &n, 8), 8);
	assert_int_equal(n, 1);
	close(ep);
	tow_close(ctx);
}

const struct CMUnitTest event_tests[] = {
	cmocka_unit_test(stores),
	cmocka_unit_test(store_is_last),
	cmocka_unit_test(eventfds),
	cmocka_unit_test(eventfd_deleted),
	cmocka_unit_test(eventfd_saturated),
	cmocka_unit_test(eventfd_all),
	cmocka_unit_test(context_fd),
};
const size_t nr_event_tests = ARRAY_LEN(event_tests);

// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Many threads on one context. */
#include "test.h"

#include <pthread.h>
#include <sched.h>

#define THREADS	8

/* Runs @fn in all threads at once; each answers NULL or what is wrong. */
static void together(void *(*fn)(void *), void *args, size_t size)
{
	pthread_t threads[THREADS];
	const char *bad[THREADS];
	unsigned int i;

	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fn,
						(char *)args + i * size), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], (void **)&bad[i]);
	for (i = 0; i < THREADS; i++)
		if (bad[i])
			fail_msg("thread %u: %s", i, bad[i]);
}

struct worker {
	struct tow_ctx *ctx;
	uint32_t handle;
	unsigned char *map;	/* of its own part, PART bytes at off */
	uint64_t off;
	unsigned int n;
	uint64_t seed;
};

#define PART	KIB(64)

static tow_token submit_one(struct tow_ctx *ctx, const struct tow_op *op)
{
	tow_token token;
	int ret;

	/* The queue is shorter than there are threads. */
	while ((ret = tow_submit(ctx, op, 1, &token)) == -EAGAIN)
		sched_yield();
	return ret == 1 ? token : 0;
}

static void *fill_and_sum(void *arg)
{
	struct worker *w = arg;
	struct tow_result res;
	unsigned int i;

	for (i = 0; i < w->n; i++) {
		uint64_t len = i % 7 ? 1 + (w->seed * i) % 512 : PART;
		struct tow_op op;
		tow_token token;

		tow_prep_fill(&op, w->handle, w->off, len, w->seed + i);
		token = submit_one(w->ctx, &op);
		if (!token)
			return "tow_submit";
		if (tow_wait(w->ctx, token, TOW_TIMEOUT_NONE, &res) ||
		    res.status || res.bytes != len)
			return "tow_wait";
		tow_prep_crc32c(&op, w->handle, w->off, len, 0);
		token = submit_one(w->ctx, &op);
		while (!tow_test(w->ctx, token, &res))
			sched_yield();
		if (res.crc != model_crc32c(0, w->map, len))
			return "crc";
		if (tow_test(w->ctx, token, &res) != -ENOENT)
			return "a result twice";
	}
	return NULL;
}

static void share_queue(void **state)
{
	struct worker w[THREADS];
	struct tow_ctx *ctx = open_ctx(5);
	struct tow_buf *buf;
	unsigned char *map;
	unsigned int i;

	(void)state;
	model_crc32c(0, "", 0);
	buf = new_buf(ctx, THREADS * PART, &map);
	for (i = 0; i < THREADS; i++)
		w[i] = (struct worker) {
			.ctx = ctx,
			.handle = tow_buf_handle(buf),
			.map = map + i * PART,
			.off = i * PART,
			.n = rounds(400),
			.seed = rnd(),
		};
	together(fill_and_sum, w, sizeof(w[0]));
	assert_int_equal(inflight(ctx), 0);
	tow_close(ctx);
}

static void *make_and_break(void *arg)
{
	struct worker *w = arg;
	unsigned char own[1000], want[1000];
	unsigned int i;

	for (i = 0; i < w->n; i++) {
		struct tow_buf *buf, *copy;
		struct tow_result res;
		unsigned char *map;
		struct tow_op op;
		tow_token token;
		uint32_t h;
		int ro;

		if (tow_buf_create(w->ctx, KIB(8), 0, TOW_NODE_ANY, &buf))
			return "tow_buf_create";
		ro = tow_buf_derive(buf, TOW_RIGHT_READ);
		if (ro < 0 || tow_buf_import(w->ctx, ro, &copy))
			return "tow_buf_import";
		close(ro);
		if (tow_mem_register(w->ctx, own, sizeof(own), 0, &h))
			return "tow_mem_register";
		memset(own, 0, sizeof(own));
		tow_prep_fill(&op, tow_buf_handle(buf), 0, KIB(8), w->seed + i);
		token = submit_one(w->ctx, &op);
		if (tow_wait(w->ctx, token, TOW_TIMEOUT_NONE, &res) ||
		    res.status)
			return "fill";
		tow_prep_copy(&op, h, 0, tow_buf_handle(copy), KIB(4),
			      sizeof(own));
		token = submit_one(w->ctx, &op);
		/* Waits for the copy, whoever does it. */
		if (tow_mem_unregister(w->ctx, h))
			return "tow_mem_unregister";
		memcpy(want, own, sizeof(own));
		if (tow_wait(w->ctx, token, 1000000000, &res) || res.status)
			return "copy";
		if (tow_buf_map(copy, (void **)&map))
			return "tow_buf_map";
		if (memcmp(want, map + KIB(4), sizeof(want)) ||
		    memcmp(want, map, 8))
			return "contents";
		tow_buf_destroy(buf);
		tow_buf_destroy(copy);
	}
	return NULL;
}

static void share_tables(void **state)
{
	struct worker w[THREADS];
	struct tow_ctx *ctx = open_ctx(5);
	int fds = count_dir("/proc/self/fd");
	unsigned int i;

	(void)state;
	for (i = 0; i < THREADS; i++)
		w[i] = (struct worker) {
			.ctx = ctx,
			.n = rounds(100),
			.seed = rnd(),
		};
	together(make_and_break, w, sizeof(w[0]));
	assert_int_equal(count_dir("/proc/self/fd"), fds);
	tow_close(ctx);
}

struct race {
	struct tow_ctx *ctx;
	const tow_token *token;
	unsigned int *round;		/* the one that is on */
	unsigned int *taken, *finished;	/* in all rounds so far */
	unsigned int n;
	bool waits;
};

static void until(const unsigned int *value, unsigned int wanted)
{
	unsigned int i;

	/* Looking without a pause gets both to the token at once. */
	for (i = 0; __atomic_load_n(value, __ATOMIC_ACQUIRE) != wanted; i++)
		if (i > 2000)
			sched_yield();
}

static void *take_it(void *arg)
{
	struct race *r = arg;
	unsigned int i;
	int ret;

	for (i = 1; i <= r->n; i++) {
		until(r->round, i);
		if (r->waits) {
			ret = tow_wait(r->ctx, *r->token, TOW_TIMEOUT_NONE,
				       NULL);
			if (!ret)
				ret = 1;
		} else {
			do {
				ret = tow_test(r->ctx, *r->token, NULL);
			} while (!ret);
		}
		if (ret == 1)
			__atomic_fetch_add(r->taken, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(r->finished, 1, __ATOMIC_RELEASE);
		if (ret != 1 && ret != -ENOENT)
			return "neither taken nor gone";
	}
	return NULL;
}

/* All want the same result: one gets it. */
static void one_taker(void **state)
{
	enum { TAKERS = 3 };
	struct tow_ctx *ctx = open_ctx(8);
	struct tow_buf *buf = new_buf(ctx, KIB(64), NULL);
	unsigned int round = 0, taken = 0, finished = 0, i;
	/* Nothing of it is the provider's: enough where that is fast. */
	unsigned int n = rounds(on_kmod(ctx) ? 1000 : 20000);
	pthread_t threads[TAKERS];
	struct race r[TAKERS];
	struct tow_op op;
	tow_token token;
	void *bad = NULL, *b;

	(void)state;
	tow_prep_fill(&op, tow_buf_handle(buf), 0, KIB(64), 1);
	for (i = 0; i < TAKERS; i++) {
		r[i] = (struct race) {
			.ctx = ctx,
			.token = &token,
			.round = &round,
			.taken = &taken,
			.finished = &finished,
			.n = n,
			.waits = i == 0,
		};
		pthread_create(&threads[i], NULL, take_it, &r[i]);
	}
	for (i = 1; i <= n; i++) {
		op.len = i % 16 ? 8 : KIB(64);
		ok(tow_submit(ctx, &op, 1, &token));
		__atomic_store_n(&round, i, __ATOMIC_RELEASE);
		until(&finished, i * TAKERS);
	}
	for (i = 0; i < TAKERS; i++) {
		pthread_join(threads[i], &b);
		bad = b ? b : bad;
	}
	if (bad)
		fail_msg("%s", (char *)bad);
	assert_int_equal(taken, n);
	tow_close(ctx);
}

const struct CMUnitTest thread_tests[] = {
	cmocka_unit_test(share_queue),
	cmocka_unit_test(share_tables),
	cmocka_unit_test(one_taker),
};
const size_t nr_thread_tests = ARRAY_LEN(thread_tests);

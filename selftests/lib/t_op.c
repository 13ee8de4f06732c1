// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Every operation against a plain C model.
 *
 * Invariant: after each operation all bytes that a destination may have
 * changed, and some on both sides of them, are compared with the model; after
 * each test all bytes are.
 */
#include "test.h"

#include <sys/mman.h>

#define GUARD	256

/* A place that operations work on, and what the model says is in it. */
struct area {
	uint32_t handle;
	int same;		/* index of the area that is the same memory */
	uint64_t length;
	unsigned char *real;
	unsigned char *model;
};

enum { BUF_A, BUF_B, OWN, ALIAS_A, NR_AREAS };

struct world {
	struct tow_ctx *ctx;
	struct area areas[NR_AREAS];
	unsigned char *own;
};

#define AREA_LEN	(MIB(8) + KIB(12))
#define OWN_SKEW	13

static void world_init(struct world *w)
{
	struct tow_buf *buf[2], *alias;
	unsigned int i;

	w->ctx = open_ctx(16);
	for (i = 0; i < 2; i++) {
		buf[i] = new_buf(w->ctx, AREA_LEN, &w->areas[i].real);
		w->areas[i].handle = tow_buf_handle(buf[i]);
	}
	w->own = mmap(NULL, AREA_LEN + 4096, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(w->own, MAP_FAILED);
	w->areas[OWN].real = w->own + OWN_SKEW;
	ok(tow_mem_register(w->ctx, w->own + OWN_SKEW, AREA_LEN, 0,
			    &w->areas[OWN].handle));
	for (i = 0; i < NR_AREAS; i++) {
		struct area *a = &w->areas[i];

		a->same = (int)i;
		a->length = AREA_LEN;
		if (i == ALIAS_A)
			break;
		a->model = malloc(AREA_LEN);
		rnd_bytes(a->real, AREA_LEN);
		memcpy(a->model, a->real, AREA_LEN);
	}
	/* Another handle, and another mapping, of the same pages. */
	ok(tow_buf_import(w->ctx, tow_buf_fd(buf[0]), &alias));
	w->areas[ALIAS_A] = w->areas[BUF_A];
	w->areas[ALIAS_A].handle = tow_buf_handle(alias);
}

static void check_range(const struct area *a, uint64_t off, uint64_t len)
{
	uint64_t from = off < GUARD ? 0 : off - GUARD;
	uint64_t to = off + len + GUARD;

	if (to > a->length)
		to = a->length;
	if (memcmp(a->real + from, a->model + from, to - from))
		assert_memory_equal(a->real + from, a->model + from, to - from);
}

static void world_exit(struct world *w)
{
	unsigned int i;

	for (i = 0; i < ALIAS_A; i++) {
		check_range(&w->areas[i], 0, AREA_LEN);
		free(w->areas[i].model);
	}
	for (i = 0; i < OWN_SKEW; i++)
		assert_int_equal(w->own[i], 0);
	tow_close(w->ctx);
	munmap(w->own, AREA_LEN + 4096);
}

static void do_copy(struct world *w, int d, uint64_t d_off, int s,
		    uint64_t s_off, uint64_t len, int hint, bool crc)
{
	struct area *src = &w->areas[s], *dst = &w->areas[d];
	uint32_t seed = crc && rnd() & 1 ? (uint32_t)rnd() : 0;
	struct tow_result res;
	struct tow_op op;

	if (crc)
		tow_prep_copy_crc(&op, dst->handle, d_off, src->handle, s_off,
				  len, seed);
	else
		tow_prep_copy(&op, dst->handle, d_off, src->handle, s_off, len);
	op.hint = (uint8_t)hint;
	res = run_ok(w->ctx, &op);
	memmove(dst->model + d_off, src->model + s_off, len);
	assert_int_equal(res.bytes, len);
	assert_int_equal(res.differs, 0);
	assert_int_equal(res.crc, crc ? model_crc32c(seed, dst->model + d_off,
						     len) : 0);
	check_range(dst, d_off, len);
}

static void do_fill(struct world *w, int d, uint64_t off, uint64_t len)
{
	struct area *dst = &w->areas[d];
	unsigned char bytes[8];
	struct tow_result res;
	uint64_t pattern = rnd(), i;
	struct tow_op op;

	tow_prep_fill(&op, dst->handle, off, len, pattern);
	res = run_ok(w->ctx, &op);
	memcpy(bytes, &pattern, 8);
	for (i = 0; i < len; i++)
		dst->model[off + i] = bytes[i % 8];
	assert_int_equal(res.bytes, len);
	assert_int_equal(res.crc, 0);
	check_range(dst, off, len);
}

static void do_crc(struct world *w, int s, uint64_t off, uint64_t len)
{
	struct area *src = &w->areas[s];
	uint32_t seed = (uint32_t)rnd();
	struct tow_result res;
	struct tow_op op;

	tow_prep_crc32c(&op, src->handle, off, len, seed);
	res = run_ok(w->ctx, &op);
	assert_int_equal(res.bytes, len);
	assert_int_equal(res.crc, model_crc32c(seed, src->model + off, len));
}

static void do_compare(struct world *w, int a, uint64_t a_off, int b,
		       uint64_t b_off, uint64_t len)
{
	const unsigned char *x = w->areas[a].model + a_off;
	const unsigned char *y = w->areas[b].model + b_off;
	struct tow_result res;
	struct tow_op op;
	uint64_t same = 0;

	tow_prep_compare(&op, w->areas[a].handle, a_off, w->areas[b].handle,
			 b_off, len);
	res = run_ok(w->ctx, &op);
	if (!memcmp(x, y, len))
		same = len;
	else
		while (x[same] == y[same])
			same++;
	assert_int_equal(res.differs, same != len);
	assert_int_equal(res.bytes, same);
	assert_int_equal(res.crc, 0);
}

/* Half the lengths are short, the others as likely of any magnitude. */
static uint64_t rnd_length(void)
{
	unsigned int bits = (unsigned int)rnd_below(rnd() & 1 ? 13 : 24);

	return 1 + rnd_below(1ull << bits);
}

/* Often one of the edges where pages, and huge pages, meet. */
static uint64_t rnd_offset(uint64_t len)
{
	uint64_t room = AREA_LEN - len;
	uint64_t off = rnd_below(room + 1);

	switch (rnd_below(4)) {
	case 0:
		off = off / 4096 * 4096 + rnd_below(3) - 1;
		break;
	case 1:
		off = off / MIB(2) * MIB(2) + rnd_below(3) - 1;
		break;
	}
	return off > room ? room : off;
}

static void random_ops(void **state)
{
	unsigned int n = rounds(600);
	struct world w = { 0 };
	unsigned int i;

	(void)state;
	world_init(&w);
	for (i = 0; i < n; i++) {
		uint64_t len = rnd_length();
		uint64_t s_off = rnd_offset(len);
		uint64_t d_off = rnd_offset(len);
		int s = (int)rnd_below(NR_AREAS);
		int d = (int)rnd_below(NR_AREAS);

		switch (rnd_below(6)) {
		case 0:
			do_fill(&w, d, d_off, len);
			break;
		case 1:
			do_crc(&w, s, s_off, len);
			break;
		case 2:
			/* Equal for most of the way at least */
			do_copy(&w, d, d_off, s, s_off, len, 0, false);
			if (rnd() & 1)
				do_fill(&w, d, d_off + rnd_below(len), 1);
			do_compare(&w, s, s_off, d, d_off, len);
			break;
		case 3:
			do_copy(&w, d, d_off, s, s_off, len, rnd() & 1, true);
			break;
		default:
			do_copy(&w, d, d_off, s, s_off, len, rnd() & 1, false);
			break;
		}
	}
	world_exit(&w);
}

static void edges(void **state)
{
	static const uint64_t lens[] = {
		1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 4095, 4096, 4097,
	};
	static const uint64_t big[] = { MIB(2) - 1, MIB(2), MIB(2) + 1 };
	static const uint64_t at[] = {
		0, 1, 8, 4095, 4096, 4097, MIB(2) - 1, MIB(2), MIB(2) + 1,
	};
	struct world w = { 0 };
	unsigned int i, k;

	(void)state;
	world_init(&w);
	for (i = 0; i < ARRAY_LEN(at); i++) {
		for (k = 0; k < ARRAY_LEN(lens); k++) {
			uint64_t other = at[(i + k) % ARRAY_LEN(at)];

			do_copy(&w, BUF_A, at[i], OWN, other, lens[k], 0, true);
			do_copy(&w, OWN, other, BUF_B, at[i], lens[k], 1,
				false);
			do_fill(&w, BUF_B, at[i], lens[k]);
			do_compare(&w, BUF_A, at[i], OWN, other, lens[k]);
			do_crc(&w, BUF_A, AREA_LEN - lens[k], lens[k]);
		}
		k = i % ARRAY_LEN(big);
		do_copy(&w, BUF_B, at[i], BUF_A, 1, big[k], 1, true);
		do_fill(&w, OWN, at[i], big[k]);
		do_compare(&w, BUF_B, at[i], BUF_A, 1, big[k]);
	}
	do_copy(&w, BUF_B, 0, OWN, 0, AREA_LEN, 1, true);
	do_compare(&w, BUF_B, 0, OWN, 0, AREA_LEN);
	world_exit(&w);
}

/* Every way in which two short ranges can overlap, by handle and by alias. */
static void overlap_short(void **state)
{
	struct world w = { 0 };
	uint64_t s, d, len;

	(void)state;
	world_init(&w);
	for (len = 1; len <= 12; len++) {
		for (s = 4090; s <= 4102; s++) {
			for (d = 4090; d <= 4102; d += 1 + (SANITIZED & 1)) {
				do_copy(&w, BUF_A, d, BUF_A, s, len, 0, false);
				do_copy(&w, ALIAS_A, d, BUF_A, s, len, 1, true);
				do_copy(&w, OWN, d, OWN, s, len, 0, true);
			}
		}
	}
	world_exit(&w);
}

static void overlap_long(void **state)
{
	static const uint64_t shift[] = {
		0, 1, 8, 63, 4095, 4096, 16384, 65537, MIB(1) - 1, MIB(1),
		MIB(1) + 1, MIB(2), MIB(3) - 1,
	};
	struct world w = { 0 };
	unsigned int i;

	(void)state;
	world_init(&w);
	for (i = 0; i < ARRAY_LEN(shift); i++) {
		uint64_t len = MIB(3);
		uint64_t base = MIB(2) - 100 + i;
		bool crc = i & 1;

		do_copy(&w, BUF_A, base + shift[i], BUF_A, base, len, 0, crc);
		do_copy(&w, BUF_A, base, BUF_A, base + shift[i], len, 0, !crc);
		do_copy(&w, ALIAS_A, base + shift[i], BUF_A, base, len, 1, crc);
		do_copy(&w, BUF_A, base, ALIAS_A, base + shift[i], len, 0, crc);
		do_copy(&w, OWN, base + shift[i], OWN, base, len, 1, !crc);
		do_copy(&w, OWN, base, OWN, base + shift[i], len, 0, crc);
	}
	world_exit(&w);
}

static void compare_places(void **state)
{
	static const uint64_t at[] = {
		0, 1, 4095, 4096, 65535, MIB(1) - 1, MIB(1), MIB(1) + 4096,
		MIB(3) - 1,
	};
	struct world w = { 0 };
	unsigned int i;

	(void)state;
	world_init(&w);
	do_copy(&w, BUF_B, 5, BUF_A, 3, MIB(3), 0, false);
	do_compare(&w, BUF_B, 5, BUF_A, 3, MIB(3));
	for (i = 0; i < ARRAY_LEN(at); i++) {
		uint64_t other = at[i] + rnd_below(MIB(3) - at[i]);

		/* Two of them: the first counts. */
		w.areas[BUF_B].real[5 + at[i]] ^= 1;
		w.areas[BUF_B].model[5 + at[i]] ^= 1;
		w.areas[BUF_A].real[3 + other] ^= 0x80;
		w.areas[BUF_A].model[3 + other] ^= 0x80;
		do_compare(&w, BUF_B, 5, BUF_A, 3, MIB(3));
		do_copy(&w, BUF_B, 5, BUF_A, 3, MIB(3), 0, false);
	}
	/* Against itself, shifted */
	do_compare(&w, BUF_A, 0, BUF_A, 0, MIB(3));
	do_compare(&w, BUF_A, 0, ALIAS_A, 1, MIB(3));
	world_exit(&w);
}

static void crc_pieces(void **state)
{
	struct world w = { 0 };
	unsigned int i;

	(void)state;
	world_init(&w);
	for (i = 0; i < rounds(60); i++) {
		uint64_t len = 2 + rnd_below(KIB(100));
		uint64_t cut = 1 + rnd_below(len - 1);
		uint64_t off = rnd_offset(len);
		struct tow_result whole, a, b, chained;
		struct tow_op op;

		tow_prep_crc32c(&op, w.areas[OWN].handle, off, len, 0);
		whole = run_ok(w.ctx, &op);
		op.len = cut;
		a = run_ok(w.ctx, &op);
		op.src_off = off + cut;
		op.len = len - cut;
		b = run_ok(w.ctx, &op);
		op.seed = a.crc;
		chained = run_ok(w.ctx, &op);
		assert_int_equal(chained.crc, whole.crc);
		assert_int_equal(tow_crc32c_combine(a.crc, b.crc, len - cut),
				 whole.crc);
	}
	world_exit(&w);
}

static void nop(void **state)
{
	struct tow_ctx *ctx = open_ctx(1);
	struct tow_result res;
	struct tow_op op;

	(void)state;
	tow_prep_nop(&op);
	res = run_ok(ctx, &op);
	assert_int_equal(res.bytes, 0);
	assert_int_equal(res.crc, 0);
	assert_int_equal(res.differs, 0);
	/* The id in the tracepoints: only where there are tracepoints. */
	if (on_kmod(ctx))
		assert_int_not_equal(res.op_id, 0);
	else
		assert_int_equal(res.op_id, 0);
	tow_close(ctx);
}

/* Short ones by the submitter, long ones by a worker. */
static void engines(void **state)
{
	struct tow_ctx *ctx = open_ctx(1);
	struct tow_info info = { .size = sizeof(info) };
	struct tow_buf *buf = new_buf(ctx, MIB(4), NULL);
	struct tow_op op;

	(void)state;
	ok(tow_info(ctx, &info));
	assert_true(info.inline_max < MIB(4));
	tow_prep_fill(&op, tow_buf_handle(buf), 0, info.inline_max, 1);
	if (info.inline_max)
		assert_int_equal(run_ok(ctx, &op).engine, TOW_ENGINE_INLINE);
	op.len++;
	assert_int_equal(run_ok(ctx, &op).engine, TOW_ENGINE_CPU);
	tow_close(ctx);
}

const struct CMUnitTest op_tests[] = {
	cmocka_unit_test(nop),
	cmocka_unit_test(engines),
	cmocka_unit_test(edges),
	cmocka_unit_test(random_ops),
	cmocka_unit_test(overlap_short),
	cmocka_unit_test(overlap_long),
	cmocka_unit_test(compare_places),
	cmocka_unit_test(crc_pieces),
};
const size_t nr_op_tests = ARRAY_LEN(op_tests);

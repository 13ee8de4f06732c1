// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The operations of the user provider.
 *
 * Invariants: the ranges were checked and their memory is held. Work goes in
 * pieces, between which a closing context is noticed. Nothing depends on a byte
 * that is read twice being the same: other processes may write to the memory at
 * any time. Stores that go around the caches are fenced before anybody is told.
 */
#include "user.h"

#include <string.h>

#include "crc32c.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define PIECE		((uint64_t)1 << 20)

/* Small enough that its second reading, for the CRC, is from the cache. */
#define CRC_PIECE	((uint64_t)16 << 10)
#define BOUNCE		4096

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Enters the piece; false when the rest is not to be done. */
static bool piece_done(struct user *u, const struct towpin_op *op,
		       struct user_outcome *out, uint64_t n)
{
	out->bytes += n;
	if (out->bytes == op->len)
		return false;
	if (!atomic_load_explicit(&u->closing, memory_order_relaxed))
		return true;
	out->failed = true;
	out->result = ECANCELED;
	return false;
}

#if defined(__SSE2__)
static void copy_nocache(char *dst, const char *src, size_t n)
{
	size_t head = -(uintptr_t)dst & 15;

	if (head > n)
		head = n;
	memcpy(dst, src, head);
	dst += head;
	src += head;
	n -= head;
	for (; n >= 64; n -= 64, dst += 64, src += 64) {
		__m128i a = _mm_loadu_si128((const __m128i *)src);
		__m128i b = _mm_loadu_si128((const __m128i *)(src + 16));
		__m128i c = _mm_loadu_si128((const __m128i *)(src + 32));
		__m128i d = _mm_loadu_si128((const __m128i *)(src + 48));

		_mm_stream_si128((__m128i *)dst, a);
		_mm_stream_si128((__m128i *)(dst + 16), b);
		_mm_stream_si128((__m128i *)(dst + 32), c);
		_mm_stream_si128((__m128i *)(dst + 48), d);
	}
	memcpy(dst, src, n);
}

static void nocache_fence(void)
{
	_mm_sfence();
}
#else
static void copy_nocache(char *dst, const char *src, size_t n)
{
	memcpy(dst, src, n);
}

static void nocache_fence(void)
{
}
#endif

/* How to copy, once overlap is understood. */
struct copy_plan {
	char *dst;
	const char *src;
	uint64_t step;		/* the longest piece */
	bool backward;		/* last piece first */
	bool nocache;
};

static void plan_copy(const struct user_slot *s, struct copy_plan *plan)
{
	const struct towpin_op *op = &s->op;
	uint64_t distance;

	*plan = (struct copy_plan) {
		.dst = s->dst->base + op->dst_off,
		.src = s->src->base + op->src_off,
		.step = PIECE,
		.nocache = op->hint == TOWPIN_HINT_NOCACHE,
	};
	plan->backward = op->dst_off > op->src_off;
	distance = plan->backward ? op->dst_off - op->src_off :
				    op->src_off - op->dst_off;
	if (distance >= op->len || !user_mem_same(s->src, s->dst)) {
		plan->backward = false;
		return;
	}

	/*
	 * They overlap. In one mapping memmove(3) sees that; between two of the
	 * same file it cannot, so read through that of the destination. When it
	 * is too short, since the file grew, keep a piece clear of itself.
	 */
	plan->nocache = false;
	if (op->src_off + op->len <= s->dst->length)
		plan->src = s->dst->base + op->src_off;
	else if (distance)
		plan->step = min_u64(PIECE, distance);
}

static void run_copy(struct user *u, const struct user_slot *s,
		     struct user_outcome *out)
{
	const struct towpin_op *op = &s->op;
	struct copy_plan plan;
	uint64_t n, at;

	plan_copy(s, &plan);
	do {
		n = min_u64(op->len - out->bytes, plan.step);
		at = plan.backward ? op->len - out->bytes - n : out->bytes;
		if (plan.nocache)
			copy_nocache(plan.dst + at, plan.src + at, n);
		else
			memmove(plan.dst + at, plan.src + at, n);
	} while (piece_done(u, op, out, n));
	if (plan.nocache)
		nocache_fence();
}

static void run_crc(struct user *u, const struct user_slot *s,
		    struct user_outcome *out)
{
	const char *src = s->src->base + s->op.src_off;
	uint64_t n;

	out->crc = s->op.seed;
	do {
		n = min_u64(s->op.len - out->bytes, PIECE);
		out->crc = towi_crc32c(out->crc, src + out->bytes, n);
	} while (piece_done(u, &s->op, out, n));
}

/* The CRC is of the bytes in dst, or of a copy that went there unchanged. */
static void run_copy_crc(struct user *u, const struct user_slot *s,
			 struct user_outcome *out)
{
	const struct towpin_op *op = &s->op;
	char bounce[BOUNCE];
	struct copy_plan plan;
	uint64_t n;

	plan_copy(s, &plan);
	if (plan.backward) {
		run_copy(u, s, out);
		if (!out->failed)
			out->crc = towi_crc32c(op->seed, plan.dst, op->len);
		return;
	}

	out->crc = op->seed;
	if (plan.nocache)
		plan.step = BOUNCE;
	else
		plan.step = min_u64(plan.step, CRC_PIECE);
	do {
		char *dst = plan.dst + out->bytes;
		const char *src = plan.src + out->bytes;

		n = min_u64(op->len - out->bytes, plan.step);
		if (plan.nocache) {
			memcpy(bounce, src, n);
			out->crc = towi_crc32c(out->crc, bounce, n);
			copy_nocache(dst, bounce, n);
		} else {
			memmove(dst, src, n);
			out->crc = towi_crc32c(out->crc, dst, n);
		}
	} while (piece_done(u, op, out, n));
	if (plan.nocache)
		nocache_fence();
}

static void run_fill(struct user *u, const struct user_slot *s,
		     struct user_outcome *out)
{
	char *dst = s->dst->base + s->op.dst_off;
	uint64_t block[BOUNCE / 8];
	uint64_t n, i;

	for (i = 0; i < BOUNCE / 8; i++)
		block[i] = s->op.src_off;
	/* Each piece but the last is a multiple of the pattern's length. */
	do {
		n = min_u64(s->op.len - out->bytes, PIECE);
		for (i = 0; i < n; i += BOUNCE)
			memcpy(dst + out->bytes + i, block,
			       min_u64(n - i, BOUNCE));
	} while (piece_done(u, &s->op, out, n));
}

/* Offset of the first difference, or @n: the memory may have changed since. */
static uint64_t first_difference(const char *a, const char *b, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n && a[i] == b[i]; i++)
		;
	return i;
}

static void run_compare(struct user *u, const struct user_slot *s,
			struct user_outcome *out)
{
	const char *a = s->src->base + s->op.src_off;
	const char *b = s->dst->base + s->op.dst_off;
	uint64_t n, i, step, at;

	do {
		n = min_u64(s->op.len - out->bytes, PIECE);
		for (i = 0; i < n; i += step) {
			step = min_u64(n - i, BOUNCE);
			at = out->bytes + i;
			if (!memcmp(a + at, b + at, step))
				continue;
			at += first_difference(a + at, b + at, step);
			if (at == out->bytes + i + step)
				continue;
			out->bytes = at;
			out->result = 1;
			return;
		}
	} while (piece_done(u, &s->op, out, n));
}

static void run_opcode(struct user *u, const struct user_slot *s,
		       struct user_outcome *out)
{
	switch (s->op.opcode) {
	case TOWPIN_OP_COPY:
		run_copy(u, s, out);
		break;
	case TOWPIN_OP_FILL:
		run_fill(u, s, out);
		break;
	case TOWPIN_OP_COMPARE:
		run_compare(u, s, out);
		break;
	case TOWPIN_OP_CRC32C:
		run_crc(u, s, out);
		break;
	case TOWPIN_OP_COPY_CRC:
		run_copy_crc(u, s, out);
		break;
	default:
		break;
	}
}

static void notify(const struct user_slot *s)
{
	char *at = s->notify->base + s->op.notify_off;

	if (s->op.flags & TOWPIN_F_STORE64)
		__atomic_store_n((uint64_t *)at, s->op.notify_value,
				 __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)at, (uint32_t)s->op.notify_value,
				 __ATOMIC_RELEASE);
}

static void fail(struct user_outcome *out, int err)
{
	out->failed = true;
	out->result = (uint8_t)-err;
}

void user_run(struct user *u, const struct user_slot *s,
	      struct user_outcome *out)
{
	uint32_t dst_access = TOWPIN_RIGHT_WRITE;
	int err = 0;

	if (s->op.opcode == TOWPIN_OP_COMPARE)
		dst_access = TOWPIN_RIGHT_READ;

	if (s->src)
		err = user_mem_begin(s->src, TOWPIN_RIGHT_READ);
	if (err) {
		fail(out, err);
		return;
	}
	if (s->dst)
		err = user_mem_begin(s->dst, dst_access);
	if (!err) {
		run_opcode(u, s, out);
		if (s->dst)
			user_mem_end(s->dst, dst_access);
	} else {
		fail(out, err);
	}
	if (s->src)
		user_mem_end(s->src, TOWPIN_RIGHT_READ);

	if (!s->notify || out->failed)
		return;
	err = user_mem_begin(s->notify, TOWPIN_RIGHT_WRITE);
	if (err) {
		fail(out, err);
		return;
	}
	notify(s);
	user_mem_end(s->notify, TOWPIN_RIGHT_WRITE);
}

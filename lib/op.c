// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Operations: slots, tokens, submitting and waiting, the same for all
 * providers.
 *
 * Invariants:
 * - A slot is in the free stack, or held by one tow_submit() call, or carries
 *   one token. The token is published after the provider took the operation
 *   and before the caller sees it; whoever exchanges it for 0 owns the result,
 *   reads the record, and puts the slot back. So no result is given twice, and
 *   no record is read for the wrong operation.
 * - A token is generation << 16 | slot. Generations of a slot start at 1 and do
 *   not repeat (48 bits), so an old token is never taken for a new one, and 0
 *   is never a token.
 * - The result of a complete operation is found by loads alone: no system call.
 * - The free stack is under a mutex. It is held for a few instructions; a batch
 *   takes it once.
 */
#include <limits.h>
#include <stdlib.h>
#include <time.h>

#include "ctx.h"

_Static_assert(TOW_OP_NOP == TOWPIN_OP_NOP, "enum tow_opcode");
_Static_assert(TOW_OP_COPY == TOWPIN_OP_COPY, "enum tow_opcode");
_Static_assert(TOW_OP_FILL == TOWPIN_OP_FILL, "enum tow_opcode");
_Static_assert(TOW_OP_COMPARE == TOWPIN_OP_COMPARE, "enum tow_opcode");
_Static_assert(TOW_OP_CRC32C == TOWPIN_OP_CRC32C, "enum tow_opcode");
_Static_assert(TOW_OP_COPY_CRC == TOWPIN_OP_COPY_CRC, "enum tow_opcode");
_Static_assert(TOW_HINT_NOCACHE == TOWPIN_HINT_NOCACHE, "TOW_HINT");
_Static_assert(TOWPIN_MAX_ENTRIES <= 1 << 16, "slot in a token");

#define BATCH		256	/* entries handed to the provider at once */
#define SLOT_BITS	16
#define LOOK_NS		50000000ull	/* between looks at the tokens */

/* ---- slots ---- */

int towi_slots_init(struct tow_ctx *ctx)
{
	unsigned int n = ctx->prov->entries;
	unsigned int i;

	ctx->slots = calloc(n, sizeof(*ctx->slots));
	ctx->free_slots = calloc(n, sizeof(*ctx->free_slots));
	if (!ctx->slots || !ctx->free_slots)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		ctx->free_slots[i] = (uint16_t)(n - 1 - i);
	ctx->nr_free = n;
	return 0;
}

void towi_slots_free(struct tow_ctx *ctx)
{
	free(ctx->slots);
	free(ctx->free_slots);
}

static unsigned int slots_get(struct tow_ctx *ctx, unsigned int want,
			      uint16_t *slots)
{
	unsigned int got = 0;

	pthread_mutex_lock(&ctx->slot_lock);
	while (got < want && ctx->nr_free)
		slots[got++] = ctx->free_slots[--ctx->nr_free];
	pthread_mutex_unlock(&ctx->slot_lock);
	return got;
}

static void slots_put(struct tow_ctx *ctx, const uint16_t *slots,
		      unsigned int n)
{
	if (!n)
		return;
	pthread_mutex_lock(&ctx->slot_lock);
	while (n)
		ctx->free_slots[ctx->nr_free++] = slots[--n];
	pthread_mutex_unlock(&ctx->slot_lock);
}

/* ---- submit ---- */

/* Refuses only what the provider's entry cannot express. */
static int op_convert(struct towpin_op *to, const struct tow_op *from,
		      uint16_t slot)
{
	uint64_t notify_value = from->notify_value;
	uint16_t flags = 0;
	uint16_t eventfd = 0;

	if (from->reserved)
		return -EINVAL;
	switch (from->notify_size) {
	case 0:
		break;
	case 4:
		flags |= TOWPIN_F_STORE32;
		notify_value = (uint32_t)notify_value;
		break;
	case 8:
		flags |= TOWPIN_F_STORE64;
		break;
	default:
		return -EINVAL;
	}
	if (from->eventfd) {
		if (from->eventfd < 0 || from->eventfd > TOWPIN_MAX_EVENTFDS)
			return -EINVAL;
		flags |= TOWPIN_F_EVENTFD;
		eventfd = (uint16_t)(from->eventfd - 1);
	}

	*to = (struct towpin_op) {
		.opcode = from->opcode,
		.hint = from->hint,
		.slot = slot,
		.flags = flags,
		.eventfd = eventfd,
		.src = from->src,
		.dst = from->dst,
		.notify = from->notify,
		.seed = from->seed,
		.src_off = from->src_off,
		.dst_off = from->dst_off,
		.len = from->len,
		.notify_off = from->notify_off,
		.notify_value = notify_value,
	};
	return 0;
}

/* At most BATCH of them; writes how many are in flight, also on an error. */
static int submit_batch(struct tow_ctx *ctx, const struct tow_op *ops,
			unsigned int n, tow_token *tokens,
			unsigned int *in_flight)
{
	struct towpin_op entries[BATCH];
	uint16_t slots[BATCH];
	uint32_t accepted = 0;
	unsigned int got, nr, i;
	int bad = 0;
	int err = 0;

	*in_flight = 0;
	got = slots_get(ctx, n < BATCH ? n : BATCH, slots);
	if (!got)
		return -EAGAIN;
	for (nr = 0; nr < got; nr++) {
		bad = op_convert(&entries[nr], &ops[nr], slots[nr]);
		if (bad)
			break;
	}

	if (nr)
		err = ctx->prov->ops->submit(ctx->prov, entries, nr, &accepted);
	for (i = 0; i < accepted; i++) {
		struct towi_slot *s = &ctx->slots[slots[i]];

		tokens[i] = ++s->generation << SLOT_BITS | slots[i];
		atomic_store_explicit(&s->token, tokens[i],
				      memory_order_release);
	}
	slots_put(ctx, slots + accepted, got - accepted);
	*in_flight = accepted;
	return err ? err : bad;
}

int tow_submit(struct tow_ctx *ctx, const struct tow_op *ops, unsigned int n,
	       tow_token *tokens)
{
	unsigned int done = 0;
	unsigned int nr;
	int err;

	err = towi_ctx_check(ctx);
	if (err)
		return err;
	if (!n || !ops || !tokens)
		return -EINVAL;

	do {
		err = submit_batch(ctx, ops + done, n - done, tokens + done,
				   &nr);
		done += nr;
	} while (!err && done < n);
	return done ? (int)done : err;
}

/* ---- results ---- */

static void result_read(struct tow_result *result, uint8_t status,
			const struct towpin_record *rec)
{
	*result = (struct tow_result) {
		.engine = (enum tow_engine)rec->engine,
		.bytes = rec->bytes,
		.crc = (uint32_t)rec->crc,
		.op_id = rec->op_id,
	};
	if (status == TOWPIN_ST_SUCCESS)
		result->differs = rec->result;
	else
		result->status = rec->result ? -(int)rec->result : -EIO;
}

/* Its slot, or NULL when @token names no operation in flight. */
static struct towi_slot *token_slot(struct tow_ctx *ctx, tow_token token)
{
	unsigned int slot = token & ((1u << SLOT_BITS) - 1);
	struct towi_slot *s;

	if (!token || slot >= ctx->prov->entries)
		return NULL;
	s = &ctx->slots[slot];
	if (atomic_load_explicit(&s->token, memory_order_acquire) != token)
		return NULL;
	return s;
}

/* 1: @result is written and the token spent; 0: not complete; or -ENOENT. */
static int token_take(struct tow_ctx *ctx, tow_token token,
		      struct tow_result *result)
{
	struct towi_slot *s = token_slot(ctx, token);
	const struct towpin_record *rec;
	uint64_t expected = token;
	uint16_t slot;
	uint8_t status;

	if (!s)
		return -ENOENT;
	slot = (uint16_t)(s - ctx->slots);
	rec = &ctx->prov->records[slot];
	status = __atomic_load_n(&rec->status, __ATOMIC_ACQUIRE);
	if (status == TOWPIN_ST_PENDING)
		return 0;
	/* Another thread may have taken it, and the slot be in use again. */
	if (!atomic_compare_exchange_strong(&s->token, &expected, 0))
		return -ENOENT;
	if (result)
		result_read(result, status, rec);
	slots_put(ctx, &slot, 1);
	return 1;
}

int tow_test(struct tow_ctx *ctx, tow_token token, struct tow_result *result)
{
	int err;

	err = towi_ctx_check(ctx);
	if (err)
		return err;
	return token_take(ctx, token, result);
}

/* The index of the first that is complete, n if none is, or -ENOENT. */
static int take_any(struct tow_ctx *ctx, const tow_token *tokens,
		    unsigned int n, struct tow_result *result)
{
	unsigned int i;
	int got;

	for (i = 0; i < n; i++) {
		got = token_take(ctx, tokens[i], result);
		if (got)
			return got < 0 ? got : (int)i;
	}
	return (int)n;
}

static void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/*
 * Look some more before sleeping, as take_any(). Limited by the clock and not
 * by a count: a hypervisor may give the processor away at each pause.
 */
static int spin(struct tow_ctx *ctx, const tow_token *tokens, unsigned int n,
		uint64_t start, struct tow_result *result)
{
	int index;

	do {
		cpu_relax();
		index = take_any(ctx, tokens, n, result);
	} while (index == (int)n && clock_ns() - start < ctx->spin_ns);
	return index;
}

/* The index of one that is complete, or an error. @slots is room for @n. */
static int wait_tokens(struct tow_ctx *ctx, const tow_token *tokens,
		       uint32_t *slots, unsigned int n, uint64_t timeout,
		       struct tow_result *result)
{
	uint64_t start, deadline;
	unsigned int i;
	uint32_t done;
	int index, err;

	index = take_any(ctx, tokens, n, result);
	if (index != (int)n)
		return index;
	if (!timeout)
		return -ETIME;

	start = clock_ns();
	/* TOW_TIMEOUT_NONE overflows whatever the time. */
	if (__builtin_add_overflow(start, timeout, &deadline))
		deadline = TOWI_DEADLINE_NEVER;
	if (ctx->spin_ns) {
		index = spin(ctx, tokens, n, start, result);
		if (index != (int)n)
			return index;
	}

	for (i = 0; i < n; i++)
		slots[i] = tokens[i] & ((1u << SLOT_BITS) - 1);
	for (;;) {
		/*
		 * The provider knows slots, not tokens: when another thread takes
		 * the result, and the slot is used again, this one has to look.
		 */
		uint64_t look = clock_ns() + LOOK_NS;
		uint64_t until = look < deadline ? look : deadline;

		err = ctx->prov->ops->wait(ctx->prov, slots, n, 1, until,
					   &done);
		if (err && err != -EINTR && err != -ETIME)
			return err;
		index = take_any(ctx, tokens, n, result);
		if (index != (int)n)
			return index;
		if (err == -ETIME && until == deadline)
			return err;
	}
}

int tow_wait(struct tow_ctx *ctx, tow_token token, uint64_t timeout,
	     struct tow_result *result)
{
	uint32_t slot;
	int err;

	err = towi_ctx_check(ctx);
	if (err)
		return err;
	return wait_tokens(ctx, &token, &slot, 1, timeout, result);
}

int tow_wait_any(struct tow_ctx *ctx, const tow_token *tokens, unsigned int n,
		 uint64_t timeout, struct tow_result *result)
{
	uint32_t slots[TOWPIN_MAX_ENTRIES];
	unsigned int i;
	int err;

	err = towi_ctx_check(ctx);
	if (err)
		return err;
	if (!n || !tokens || n > ctx->prov->entries)
		return -EINVAL;
	/* So that a stale token is told of whatever the others do. */
	for (i = 0; i < n; i++)
		if (!token_slot(ctx, tokens[i]))
			return -ENOENT;
	return wait_tokens(ctx, tokens, slots, n, timeout, result);
}

int tow_run(struct tow_ctx *ctx, const struct tow_op *op,
	    struct tow_result *result)
{
	tow_token token;
	int err;

	err = tow_submit(ctx, op, 1, &token);
	if (err < 0)
		return err;
	return tow_wait(ctx, token, TOW_TIMEOUT_NONE, result);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * SUBMIT: entries from user space to engines.
 *
 * Invariants: an entry is read once, into kernel memory, and only that copy is
 * used. Entries are started in order and the first refused one stops the call:
 * those before it are under way, it and the rest have had no effect. No lock is
 * held while an operation runs.
 */
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include "engine.h"
#include "trace.h"

/* Entries copied in at a time: half a kilobyte of stack. */
#define TOWPIN_SUBMIT_CHUNK 8

static bool towpin_desc_timed(void)
{
	return trace_towpin_submit_enabled() ||
	       trace_towpin_engine_start_enabled() ||
	       trace_towpin_complete_enabled();
}

static void towpin_desc_run_inline(struct towpin_desc *desc)
{
	desc->engine = TOWPIN_ENGINE_INLINE;
	trace_towpin_submit(desc, atomic_read(&desc->ctx->inflight));
	desc->start_ns = desc->submit_ns;
	trace_towpin_engine_start(desc);
	towpin_memops_run(desc);
	towpin_desc_complete(desc);
}

/* The context must outlive the descriptor, the file need not. */
static void towpin_desc_start(struct towpin_desc *desc,
			      const struct towpin_engine *engine)
{
	struct towpin_ctx *ctx = desc->ctx;

	u32 depth = atomic_inc_return(&ctx->inflight) - 1;

	desc->engine = engine->id;
	towpin_ctx_get(ctx);
	towpin_count(TOWPIN_CNT_INFLIGHT, 1);
	trace_towpin_submit(desc, depth);
	engine->submit(desc);
}

static int towpin_submit_one(struct towpin_ctx *ctx, struct towpin_queue *queue,
			     const struct towpin_op *op)
{
	struct towpin_desc *desc;
	int ret;

	ret = towpin_desc_prepare(ctx, queue, op, &desc);
	if (ret)
		return ret;
	if (towpin_desc_timed())
		desc->submit_ns = ktime_get_ns();
	if (desc->len <= towpin_engine_inline_max())
		towpin_desc_run_inline(desc);
	else
		towpin_desc_start(desc, &towpin_engine_cpu);
	return 0;
}

/*
 * Entries from @from on: how many of them are in @ops now, or a negative errno.
 * A constant size spares the copy some checks: a single entry, or a whole chunk.
 */
static int towpin_submit_fetch(struct towpin_op *ops,
			       const struct towpin_op __user *from, u32 left)
{
	u32 n = min_t(u32, left, TOWPIN_SUBMIT_CHUNK);
	unsigned long missed;

	if (n == 1)
		missed = copy_from_user(ops, from, sizeof(*ops));
	else if (n == TOWPIN_SUBMIT_CHUNK)
		missed = copy_from_user(ops, from,
					TOWPIN_SUBMIT_CHUNK * sizeof(*ops));
	else
		missed = copy_from_user(ops, from, n * sizeof(*ops));
	return missed ? -EFAULT : n;
}

static int towpin_submit_all(struct towpin_ctx *ctx, struct towpin_queue *queue,
			     struct towpin_submit *submit)
{
	const struct towpin_op __user *user = u64_to_user_ptr(submit->ops);
	/* Written by the fetch, as far as it says: clearing it would cost more. */
	struct towpin_op ops[TOWPIN_SUBMIT_CHUNK] __uninitialized;
	u32 i, in = 0;
	int ret;

	for (i = 0; i < submit->nr; i++) {
		if (i == in) {
			if (i && fatal_signal_pending(current))
				return -EINTR;
			cond_resched();
			ret = towpin_submit_fetch(ops, user + in,
						  submit->nr - in);
			if (ret < 0)
				return ret;
			in += ret;
		}
		ret = towpin_submit_one(ctx, queue,
					&ops[i % TOWPIN_SUBMIT_CHUNK]);
		if (ret)
			return ret;
		submit->accepted++;
	}
	return 0;
}

long towpin_ioctl_submit(struct towpin_ctx *ctx, void *arg,
			 const struct towpin_uarg *uarg)
{
	struct towpin_queue *queue = towpin_ctx_queue(ctx);
	struct towpin_submit *submit = arg;
	struct towpin_submit __user *user = uarg->ptr;
	int ret;

	if (submit->flags || submit->reserved || !submit->nr ||
	    submit->nr > TOWPIN_MAX_ENTRIES ||
	    submit->op_size != sizeof(struct towpin_op))
		return -EINVAL;
	if (!queue)
		return -ENXIO;
	/* Find out that the answer cannot be written before it matters. */
	submit->accepted = 0;
	if (put_user(0, &user->accepted))
		return -EFAULT;
	ret = towpin_submit_all(ctx, queue, submit);
	if (put_user(submit->accepted, &user->accepted))
		return -EFAULT;
	return ret;
}

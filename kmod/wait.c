// SPDX-License-Identifier: GPL-2.0-only
/*
 * Learning of completions by sleeping: WAIT, poll(2) and read(2).
 *
 * Invariants: what counts is the record's status, which only this module can
 * write. A completion writes the record, then raises ctx->completed, then wakes
 * ctx->wait; a sleeper queues itself, then looks: so none is missed.
 */
#include <linux/hrtimer.h>
#include <linux/nospec.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "towpin.h"
#include "trace.h"

/* Slot lists up to this long need no allocation. */
#define TOWPIN_WAIT_FEW 16

/* @slots NULL: all of the queue. Slots are in range. */
static u32 towpin_count_done(struct towpin_queue *queue, const u32 *slots,
			     u32 nr)
{
	u32 i, done = 0;

	for (i = 0; i < nr; i++) {
		u32 slot = slots ? slots[i] : i;

		slot = array_index_nospec(slot, queue->entries);
		/* Acquire: the caller may look at what the record tells. */
		done += smp_load_acquire(&towpin_queue_record(queue, slot)->status)
			!= TOWPIN_ST_PENDING;
	}
	return done;
}

/* 0, -ETIME or -ERESTARTSYS: the deadline is absolute, so restarting is right. */
static int towpin_wait_done(struct towpin_ctx *ctx, struct towpin_queue *queue,
			    const u32 *slots, u32 nr, struct towpin_wait *wait)
{
	ktime_t deadline = min_t(u64, wait->deadline, KTIME_MAX);
	ktime_t *expires = wait->deadline > KTIME_MAX ? NULL : &deadline;
	bool expired = !wait->deadline;
	DEFINE_WAIT(entry);
	int ret = 0;

	for (;;) {
		prepare_to_wait(&ctx->wait, &entry, TASK_INTERRUPTIBLE);
		wait->done = towpin_count_done(queue, slots, nr);
		if (wait->done >= wait->min)
			break;
		if (expired) {
			ret = -ETIME;
			break;
		}
		if (signal_pending(current)) {
			ret = -ERESTARTSYS;
			break;
		}
		expired = !schedule_hrtimeout_range(expires,
						    current->timer_slack_ns,
						    HRTIMER_MODE_ABS);
	}
	finish_wait(&ctx->wait, &entry);
	return ret;
}

static int towpin_wait_copy_slots(struct towpin_queue *queue,
				  const struct towpin_wait *wait, u32 *slots)
{
	u32 i;

	if (copy_from_user(slots, u64_to_user_ptr(wait->slots),
			   wait->nr * sizeof(*slots)))
		return -EFAULT;
	for (i = 0; i < wait->nr; i++)
		if (slots[i] >= queue->entries)
			return -EINVAL;
	return 0;
}

static int towpin_wait_traced(struct towpin_ctx *ctx,
			      struct towpin_queue *queue, const u32 *slots,
			      u32 nr, struct towpin_wait *wait)
{
	u64 begin;
	int ret;

	trace_towpin_wait_begin(ctx->id, nr, wait->min, wait->deadline);
	begin = trace_towpin_wait_end_enabled() ? ktime_get_ns() : 0;
	ret = towpin_wait_done(ctx, queue, slots, nr, wait);
	if (trace_towpin_wait_end_enabled())
		trace_towpin_wait_end(ctx->id, wait->done, ret,
				      begin ? ktime_get_ns() - begin : 0);
	return ret;
}

long towpin_ioctl_wait(struct towpin_ctx *ctx, void *arg,
		       const struct towpin_uarg *uarg)
{
	struct towpin_queue *queue = towpin_ctx_queue(ctx);
	struct towpin_wait *wait = arg;
	u32 few[TOWPIN_WAIT_FEW];
	u32 *slots = NULL;
	u32 nr;
	int ret, err;

	if (wait->flags || wait->reserved || wait->nr > TOWPIN_MAX_ENTRIES ||
	    (!wait->nr && wait->slots))
		return -EINVAL;
	if (!queue)
		return -ENXIO;
	nr = wait->nr ? wait->nr : queue->entries;
	if (!wait->min || wait->min > nr)
		return -EINVAL;
	if (wait->nr) {
		slots = few;
		if (wait->nr > ARRAY_SIZE(few))
			slots = kvmalloc_array(wait->nr, sizeof(*slots),
					       GFP_KERNEL_ACCOUNT);
		if (!slots)
			return -ENOMEM;
		ret = towpin_wait_copy_slots(queue, wait, slots);
		if (ret)
			goto out;
	}

	ret = towpin_wait_traced(ctx, queue, slots, nr, wait);
	if (ret != -ERESTARTSYS) {
		err = towpin_uarg_write(uarg, wait, sizeof(*wait));
		if (err)
			ret = err;
	}
out:
	if (slots != few)
		kvfree(slots);
	return ret;
}

__poll_t towpin_poll(struct file *file, struct poll_table_struct *table)
{
	struct towpin_ctx *ctx = file->private_data;
	struct towpin_queue *queue;
	__poll_t mask = 0;

	poll_wait(file, &ctx->wait, table);
	queue = towpin_ctx_queue(ctx);
	if (!queue)
		return EPOLLERR;
	if (atomic64_read(&ctx->completed) != atomic64_read(&ctx->taken))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (atomic_read(&ctx->inflight) < queue->entries)
		mask |= EPOLLOUT | EPOLLWRNORM;
	return mask;
}

/* Completions since the last call; two readers never get the same one. */
static u64 towpin_take_completed(struct towpin_ctx *ctx)
{
	/* Acquire: what was completed by then is read as completed below. */
	s64 taken = atomic64_read_acquire(&ctx->taken);
	s64 completed;

	do {
		completed = atomic64_read(&ctx->completed);
	} while (!atomic64_try_cmpxchg(&ctx->taken, &taken, completed));
	return completed - taken;
}

ssize_t towpin_read(struct file *file, char __user *buf, size_t count,
		    loff_t *pos)
{
	struct towpin_ctx *ctx = file->private_data;
	u64 n;
	int ret;

	if (count < sizeof(n))
		return -EINVAL;
	if (!towpin_ctx_queue(ctx))
		return -ENXIO;
	n = towpin_take_completed(ctx);
	if (!n && file->f_flags & O_NONBLOCK)
		return -EAGAIN;
	if (!n) {
		ret = wait_event_interruptible(ctx->wait,
					       (n = towpin_take_completed(ctx)));
		if (ret)
			return ret;
	}
	return copy_to_user(buf, &n, sizeof(n)) ? -EFAULT : sizeof(n);
}

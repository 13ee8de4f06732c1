// SPDX-License-Identifier: GPL-2.0-only
/*
 * The eventfds of a context, by index: one context can wake many peers.
 *
 * Invariants: as for memory handles: the table holds one reference, each
 * descriptor one more, an index is published last, and lookups under RCU count
 * only if they raise a refcount that is not zero.
 */
#include <linux/eventfd.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include "towpin.h"

void towpin_event_put(struct towpin_event *event)
{
	if (!refcount_dec_and_test(&event->refs))
		return;
	eventfd_ctx_put(event->eventfd);
	towpin_count(TOWPIN_CNT_EVENTFDS, -1);
	kfree_rcu(event, rcu);
}

/* A reference on the eventfd of @index, or NULL. */
struct towpin_event *towpin_event_lookup(struct towpin_ctx *ctx, u32 index)
{
	struct towpin_event *event;

	rcu_read_lock();
	event = xa_load(&ctx->events, index);
	if (event && !refcount_inc_not_zero(&event->refs))
		event = NULL;
	rcu_read_unlock();
	return event;
}

/* Context teardown: nobody can look up any more. */
void towpin_event_drop_all(struct towpin_ctx *ctx)
{
	struct towpin_event *event;
	unsigned long index;

	xa_for_each(&ctx->events, index, event) {
		xa_erase(&ctx->events, index);
		towpin_event_put(event);
		cond_resched();
	}
	xa_destroy(&ctx->events);
}

long towpin_ioctl_eventfd_add(struct towpin_ctx *ctx, void *arg,
			      const struct towpin_uarg *uarg)
{
	struct towpin_eventfd *add = arg;
	struct towpin_event *event;
	int ret;

	if (add->flags || add->index)
		return -EINVAL;
	event = kzalloc(sizeof(*event), GFP_KERNEL_ACCOUNT);
	if (!event)
		return -ENOMEM;
	refcount_set(&event->refs, 1);
	event->eventfd = eventfd_ctx_fdget(add->fd);
	if (IS_ERR(event->eventfd)) {
		ret = PTR_ERR(event->eventfd);
		kfree(event);
		return ret;
	}
	towpin_count(TOWPIN_CNT_EVENTFDS, 1);
	ret = xa_alloc(&ctx->events, &add->index, NULL,
		       XA_LIMIT(0, TOWPIN_MAX_EVENTFDS - 1),
		       GFP_KERNEL_ACCOUNT);
	if (ret) {
		ret = ret == -EBUSY ? -ENOSPC : ret;
		goto err_put;
	}
	ret = towpin_uarg_write(uarg, add, sizeof(*add));
	if (ret)
		goto err_erase;
	/* The index is reserved: this allocates nothing and cannot fail. */
	xa_store(&ctx->events, add->index, event, GFP_KERNEL_ACCOUNT);
	return 0;

err_erase:
	xa_erase(&ctx->events, add->index);
err_put:
	towpin_event_put(event);
	return ret;
}

long towpin_ioctl_eventfd_del(struct towpin_ctx *ctx, void *arg,
			      const struct towpin_uarg *uarg)
{
	struct towpin_eventfd *del = arg;
	struct towpin_event *event;

	if (del->flags || del->fd)
		return -EINVAL;
	/* The lock: an index that is reserved but not published stays so. */
	xa_lock(&ctx->events);
	event = xa_load(&ctx->events, del->index);
	if (event)
		__xa_erase(&ctx->events, del->index);
	xa_unlock(&ctx->events);
	if (!event)
		return -ENOENT;
	towpin_event_put(event);
	return 0;
}

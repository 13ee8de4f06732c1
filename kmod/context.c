// SPDX-License-Identifier: GPL-2.0-only
/*
 * One open of /dev/towpin.
 *
 * Invariants: the file holds one reference, each descriptor that an engine has
 * another. Closing drops the tables at once; what descriptors name they hold
 * themselves. The last put, by close or by the last completion, frees the queue.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "towpin.h"

static atomic_t towpin_ctx_ids;

void towpin_ctx_get(struct towpin_ctx *ctx)
{
	refcount_inc(&ctx->refs);
}

void towpin_ctx_put(struct towpin_ctx *ctx)
{
	if (!refcount_dec_and_test(&ctx->refs))
		return;
	if (ctx->queue)
		towpin_queue_destroy(ctx->queue);
	towpin_count(TOWPIN_CNT_CONTEXTS, -1);
	kfree(ctx);
}

int towpin_open(struct inode *inode, struct file *file)
{
	const fmode_t both = FMODE_READ | FMODE_WRITE;
	struct towpin_ctx *ctx;

	if ((file->f_mode & both) != both)
		return -EACCES;
	ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);
	if (!ctx)
		return -ENOMEM;
	refcount_set(&ctx->refs, 1);
	init_waitqueue_head(&ctx->wait);
	xa_init_flags(&ctx->mems, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	xa_init_flags(&ctx->events, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	/* 24 bits of it go into operation ids; 0 is no context. */
	ctx->id = atomic_inc_return(&towpin_ctx_ids);
	towpin_count(TOWPIN_CNT_CONTEXTS, 1);
	file->private_data = ctx;
	return stream_open(inode, file);
}

/* No descriptor, mapping or call of this file is left. */
int towpin_release(struct inode *inode, struct file *file)
{
	struct towpin_ctx *ctx = file->private_data;

	WRITE_ONCE(ctx->closing, true);
	towpin_mem_drop_all(ctx);
	towpin_event_drop_all(ctx);
	towpin_ctx_put(ctx);
	return 0;
}

int towpin_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct towpin_ctx *ctx = file->private_data;
	struct towpin_queue *queue = towpin_ctx_queue(ctx);

	return queue ? towpin_queue_mmap(queue, vma) : -ENXIO;
}

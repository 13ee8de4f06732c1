// SPDX-License-Identifier: GPL-2.0-only
/*
 * The queue of a context: slots, and the records that user space reads.
 *
 * Invariants: a queue is made once and stays until its context ends. Record
 * pages can be mapped but never written by user space, so that what stands in
 * them is the module's word: a record's status is also the lock of its slot.
 * Whoever changes it to TOWPIN_ST_PENDING owns the descriptor and the record,
 * until it writes another status, which is the last that it does to either.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include "towpin.h"
#include "engine.h"

void towpin_queue_destroy(struct towpin_queue *queue)
{
	unsigned int i;

	for (i = 0; i < queue->nr_pages; i++)
		put_page(queue->pages[i]);
	kvfree(queue->descs);
	kfree(queue);
}

struct towpin_queue *towpin_queue_create(struct towpin_ctx *ctx,
					 unsigned int entries)
{
	size_t bytes = entries * sizeof(struct towpin_record);
	struct towpin_queue *queue;
	unsigned int i;

	BUILD_BUG_ON(sizeof(struct towpin_op) != 64);
	BUILD_BUG_ON(sizeof(struct towpin_record) != 32);

	queue = kzalloc(sizeof(*queue), GFP_KERNEL_ACCOUNT);
	if (!queue)
		return NULL;
	queue->entries = entries;
	queue->descs = kvcalloc(entries, sizeof(*queue->descs),
				GFP_KERNEL_ACCOUNT);
	if (!queue->descs)
		goto err;
	while (queue->nr_pages < DIV_ROUND_UP(bytes, PAGE_SIZE)) {
		struct page *page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);

		if (!page)
			goto err;
		queue->pages[queue->nr_pages++] = page;
	}
	for (i = 0; i < entries; i++) {
		queue->descs[i].ctx = ctx;
		queue->descs[i].slot = i;
		queue->descs[i].record = towpin_queue_record(queue, i);
		queue->descs[i].record->status = TOWPIN_ST_UNUSED;
		towpin_engine_desc_init(&queue->descs[i]);
	}
	return queue;

err:
	towpin_queue_destroy(queue);
	return NULL;
}

static vm_fault_t towpin_records_fault(struct vm_fault *vmf)
{
	struct towpin_queue *queue = vmf->vma->vm_private_data;

	if (vmf->pgoff >= queue->nr_pages)
		return VM_FAULT_SIGBUS;
	vmf->page = queue->pages[vmf->pgoff];
	get_page(vmf->page);
	return 0;
}

static const struct vm_operations_struct towpin_records_vm_ops = {
	.fault = towpin_records_fault,
};

/* The mapping keeps the file, hence the context and the queue. */
int towpin_queue_mmap(struct towpin_queue *queue, struct vm_area_struct *vma)
{
	if (vma->vm_flags & VM_WRITE)
		return -EACCES;
	if (!(vma->vm_flags & VM_SHARED) || vma->vm_pgoff ||
	    vma_pages(vma) > queue->nr_pages)
		return -EINVAL;
	vm_flags_clear(vma, VM_MAYWRITE);
	vma->vm_private_data = queue;
	vma->vm_ops = &towpin_records_vm_ops;
	return 0;
}

long towpin_ioctl_setup(struct towpin_ctx *ctx, void *arg,
			const struct towpin_uarg *uarg)
{
	struct towpin_setup *setup = arg;
	struct towpin_queue *queue;
	int ret;

	if (setup->flags || setup->reserved || setup->records_length ||
	    !setup->entries || setup->entries > TOWPIN_MAX_ENTRIES)
		return -EINVAL;
	if (towpin_ctx_queue(ctx))
		return -EBUSY;
	queue = towpin_queue_create(ctx, setup->entries);
	if (!queue)
		return -ENOMEM;
	setup->records_length = (u64)queue->nr_pages << PAGE_SHIFT;
	ret = towpin_uarg_write(uarg, setup, sizeof(*setup));
	/* Another thread may have been quicker. Pairs with towpin_ctx_queue(). */
	if (!ret && cmpxchg_release(&ctx->queue, NULL, queue))
		ret = -EBUSY;
	if (ret)
		towpin_queue_destroy(queue);
	else
		wake_up_all(&ctx->wait);	/* those who polled before */
	return ret;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers: zeroed pages that stay where they are until the last dma-buf over
 * them is released. Whoever mapped or pinned a page through a mapping holds a
 * reference of its own on it, so such a page outlives even the buffer.
 *
 * Invariants: pages[] never changes between create and destroy; a huge chunk is
 * one compound page, of which pages[] lists every base page, and whose head
 * alone carries our reference; they come before all small pages, so that each
 * begins at an offset that is a multiple of its size, as mapping it whole needs;
 * nr_pages counts the entries that are valid, so that the same destroy serves a
 * half-built buffer.
 */
#include <linux/huge_mm.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/nospec.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include "towpin.h"
#include "trace.h"

static atomic_t towpin_buffer_ids;

static void towpin_buffer_free_pages(struct towpin_buffer *buffer)
{
	unsigned long i = 0;

	while (i < buffer->nr_pages) {
		struct page *page = buffer->pages[i];

		i += compound_nr(page);
		put_page(page);
		cond_resched();
	}
}

static void towpin_buffer_destroy(struct kref *kref)
{
	struct towpin_buffer *buffer = container_of(kref, struct towpin_buffer,
						    refs);

	trace_towpin_buf_free(buffer->id, (u64)buffer->nr_pages << PAGE_SHIFT);
	towpin_buffer_free_pages(buffer);
	towpin_uncharge(&buffer->charge);
	towpin_count(TOWPIN_CNT_BUFFERS, -1);
	towpin_count(TOWPIN_CNT_BUFFER_PAGES, -(long)buffer->nr_pages);
	kvfree(buffer->pages);
	mutex_destroy(&buffer->lock);
	kfree(buffer);
}

void towpin_buffer_get(struct towpin_buffer *buffer)
{
	kref_get(&buffer->refs);
}

void towpin_buffer_put(struct towpin_buffer *buffer)
{
	kref_put(&buffer->refs, towpin_buffer_destroy);
}

/*
 * RETRY_MAYFAIL: a buffer too large for the machine is the caller's mistake and
 * must not make the OOM killer end somebody else. NORETRY: a huge page is only
 * welcome when it is at hand.
 */
static struct page *towpin_buffer_alloc_chunk(int node, bool strict, bool huge)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;

	if (strict)
		gfp |= __GFP_THISNODE;
	if (huge)
		return alloc_pages_node(node, gfp | __GFP_COMP | __GFP_NORETRY,
					HPAGE_PMD_ORDER);
	return alloc_pages_node(node, gfp | __GFP_RETRY_MAYFAIL, 0);
}

static int towpin_buffer_fill(struct towpin_buffer *buffer, unsigned long total,
			      int node, bool strict, bool huge)
{
	while (buffer->nr_pages < total) {
		unsigned long left = total - buffer->nr_pages;
		struct page *page = NULL;
		unsigned long i, nr;

		if (fatal_signal_pending(current))
			return -EINTR;
		if (huge && left >= HPAGE_PMD_NR) {
			page = towpin_buffer_alloc_chunk(node, strict, true);
			/* One failure says enough: do not stall on each chunk. */
			huge = page;
		}
		if (!page)
			page = towpin_buffer_alloc_chunk(node, strict, false);
		if (!page)
			return -ENOMEM;

		nr = compound_nr(page);
		for (i = 0; i < nr; i++)
			buffer->pages[buffer->nr_pages + i] = page + i;
		buffer->nr_pages += nr;
		if (nr > 1)
			buffer->nr_huge += nr;
		cond_resched();
	}
	return 0;
}

/*
 * The caller's reference is the result. @length is in 1 .. TOWPIN_MAX_LENGTH;
 * what exceeds the machine's memory is refused before anything is allocated.
 */
struct towpin_buffer *towpin_buffer_create(u64 length, u32 node, u32 flags)
{
	unsigned long total = PAGE_ALIGN(length) >> PAGE_SHIFT;
	bool huge = IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE) &&
		    !(flags & TOWPIN_BUF_SMALL_PAGES);
	bool strict = node != TOWPIN_NODE_ANY;
	struct towpin_buffer *buffer;
	int ret;

	if (strict) {
		if (node >= MAX_NUMNODES)
			return ERR_PTR(-EINVAL);
		node = array_index_nospec(node, MAX_NUMNODES);
		if (!node_state(node, N_MEMORY))
			return ERR_PTR(-EINVAL);
	}
	if (total > totalram_pages())
		return ERR_PTR(-ENOMEM);

	buffer = kzalloc(sizeof(*buffer), GFP_KERNEL_ACCOUNT);
	if (!buffer)
		return ERR_PTR(-ENOMEM);
	ret = towpin_charge(&buffer->charge, total);
	if (ret)
		goto err_free;
	ret = -ENOMEM;
	if (array_size(total, sizeof(*buffer->pages)) > INT_MAX)
		goto err_uncharge;
	buffer->pages = kvmalloc_array(total, sizeof(*buffer->pages),
				       GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!buffer->pages)
		goto err_uncharge;
	ret = towpin_buffer_fill(buffer, total,
				 strict ? (int)node : numa_mem_id(), strict,
				 huge);
	if (ret)
		goto err_pages;

	kref_init(&buffer->refs);
	mutex_init(&buffer->lock);
	INIT_LIST_HEAD(&buffer->attachments);
	buffer->id = atomic_inc_return(&towpin_buffer_ids);
	towpin_count(TOWPIN_CNT_BUFFERS, 1);
	towpin_count(TOWPIN_CNT_BUFFER_PAGES, buffer->nr_pages);
	trace_towpin_buf_create(buffer->id, (u64)total << PAGE_SHIFT,
				(u64)buffer->nr_huge << PAGE_SHIFT,
				strict ? (int)node : -1);
	return buffer;

err_pages:
	towpin_buffer_free_pages(buffer);
	kvfree(buffer->pages);
err_uncharge:
	towpin_uncharge(&buffer->charge);
err_free:
	kfree(buffer);
	return ERR_PTR(ret);
}

long towpin_ioctl_buf_create(struct towpin_ctx *ctx, void *arg,
			     const struct towpin_uarg *uarg)
{
	struct towpin_buf_create *create = arg;
	struct towpin_buffer *buffer;
	int fd;

	if (create->flags & ~TOWPIN_BUF_SMALL_PAGES || create->reserved ||
	    !create->length)
		return -EINVAL;
	if (create->length > TOWPIN_MAX_LENGTH)
		return -EOVERFLOW;

	buffer = towpin_buffer_create(create->length, create->node,
				      create->flags);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	fd = towpin_dmabuf_export(buffer, TOWPIN_RIGHT_READ |
					  TOWPIN_RIGHT_WRITE);
	towpin_buffer_put(buffer);
	return fd;
}

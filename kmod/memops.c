// SPDX-License-Identifier: GPL-2.0-only
/*
 * The operations themselves, by CPU.
 *
 * Invariants: the ranges were checked against the handles' lengths when the
 * descriptor was prepared, and those never change. Memory is worked on in pieces
 * that are contiguous on both sides and no longer than TOWPIN_PIECE, between
 * which the scheduler and a closing context are given their say. User space can
 * change the bytes at any time: nothing here depends on reading the same twice.
 */
#include <linux/crc32c.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include "engine.h"

#define TOWPIN_PIECE	(256UL << 10)

/*
 * The address of byte @off, and in @len, which it lowers, how many bytes from
 * there on are contiguous.
 */
static void *towpin_mem_span(const struct towpin_mem *mem, u64 off, size_t *len)
{
	size_t have;
	u64 pos;
	unsigned long i;

	if (!mem->pages)
		return mem->vaddr + off;

	pos = mem->first_off + off;
	i = pos >> PAGE_SHIFT;
	have = PAGE_SIZE - offset_in_page(pos);
	while (have < *len &&
	       page_to_pfn(mem->pages[i + 1]) == page_to_pfn(mem->pages[i]) + 1) {
		have += PAGE_SIZE;
		i++;
	}
	*len = min(*len, have);
	return page_address(mem->pages[pos >> PAGE_SHIFT]) + offset_in_page(pos);
}

/* False: stop. Nobody waits for the rest, or the submitter is being killed. */
static bool towpin_piece_done(struct towpin_desc *desc, size_t len)
{
	desc->bytes += len;
	if (desc->bytes == desc->len)
		return true;
	cond_resched();
	if (!towpin_ctx_closing(desc->ctx) && !fatal_signal_pending(current))
		return true;
	desc->status = -ECANCELED;
	return false;
}

static bool towpin_same_memory(const struct towpin_mem *a,
			       const struct towpin_mem *b)
{
	return a == b || (a->buffer && a->buffer == b->buffer) ||
	       (!a->buffer && a->dmabuf && a->dmabuf == b->dmabuf);
}

/* Would a copy from the front overwrite source bytes before they are read? */
static bool towpin_must_copy_backward(const struct towpin_desc *desc)
{
	return towpin_same_memory(desc->src, desc->dst) &&
	       desc->dst_off > desc->src_off &&
	       desc->dst_off - desc->src_off < desc->len;
}

static void towpin_copy_forward(struct towpin_desc *desc)
{
	bool nocache = desc->hint == TOWPIN_HINT_NOCACHE;
	bool overlap = towpin_same_memory(desc->src, desc->dst);
	bool crc = desc->opcode == TOWPIN_OP_COPY_CRC;
	size_t len;

	do {
		void *src, *dst;

		len = min_t(u64, desc->len - desc->bytes, TOWPIN_PIECE);
		src = towpin_mem_span(desc->src, desc->src_off + desc->bytes,
				      &len);
		dst = towpin_mem_span(desc->dst, desc->dst_off + desc->bytes,
				      &len);
		if (overlap)
			memmove(dst, src, len);
		else if (nocache)
			towpin_memcpy_nocache(dst, src, len);
		else
			memcpy(dst, src, len);
		if (crc)
			desc->crc = crc32c(desc->crc, dst, len);
	} while (towpin_piece_done(desc, len) && desc->bytes < desc->len);
}

/* From the end to the front, page by page: rare, so no cleverer. */
static void towpin_copy_backward(struct towpin_desc *desc)
{
	size_t len;

	do {
		u64 left = desc->len - desc->bytes;
		u64 src_end = desc->src_off + left;
		u64 dst_end = desc->dst_off + left;
		size_t one = 1;
		void *src, *dst;

		/* Not across a page boundary on either side. */
		len = min_t(u64, left, PAGE_SIZE);
		if (desc->src->pages)
			len = min_t(u64, len, offset_in_page(desc->src->first_off +
							     src_end - 1) + 1);
		if (desc->dst->pages)
			len = min_t(u64, len, offset_in_page(desc->dst->first_off +
							     dst_end - 1) + 1);
		src = towpin_mem_span(desc->src, src_end - len, &one);
		dst = towpin_mem_span(desc->dst, dst_end - len, &one);
		memmove(dst, src, len);
	} while (towpin_piece_done(desc, len) && desc->bytes < desc->len);
}

/* The CRC of what landed, in the order of the bytes. */
static void towpin_crc(struct towpin_desc *desc, const struct towpin_mem *mem,
		       u64 off)
{
	size_t len;

	do {
		void *data;

		len = min_t(u64, desc->len - desc->bytes, TOWPIN_PIECE);
		data = towpin_mem_span(mem, off + desc->bytes, &len);
		desc->crc = crc32c(desc->crc, data, len);
	} while (towpin_piece_done(desc, len) && desc->bytes < desc->len);
}

static void towpin_copy(struct towpin_desc *desc)
{
	if (!towpin_must_copy_backward(desc)) {
		towpin_copy_forward(desc);
		return;
	}
	towpin_copy_backward(desc);
	if (desc->opcode == TOWPIN_OP_COPY_CRC && !desc->status) {
		desc->bytes = 0;
		towpin_crc(desc, desc->dst, desc->dst_off);
	}
}

static void towpin_fill(struct towpin_desc *desc)
{
	size_t len;

	do {
		/* Piece ends need not be multiples of the pattern: rotate. */
		unsigned int phase = desc->bytes % sizeof(u64);
		u64 pattern = desc->pattern;
		void *dst;

		if (phase)
			pattern = pattern >> (8 * phase) |
				  pattern << (64 - 8 * phase);
		len = min_t(u64, desc->len - desc->bytes, TOWPIN_PIECE);
		dst = towpin_mem_span(desc->dst, desc->dst_off + desc->bytes,
				      &len);
		memset64(dst, pattern, len / sizeof(u64));
		memcpy(dst + round_down(len, sizeof(u64)), &pattern,
		       len % sizeof(u64));
	} while (towpin_piece_done(desc, len) && desc->bytes < desc->len);
}

static void towpin_compare(struct towpin_desc *desc)
{
	size_t len;

	do {
		const u8 *a, *b;
		size_t i;

		len = min_t(u64, desc->len - desc->bytes, TOWPIN_PIECE);
		a = towpin_mem_span(desc->src, desc->src_off + desc->bytes,
				    &len);
		b = towpin_mem_span(desc->dst, desc->dst_off + desc->bytes,
				    &len);
		if (!memcmp(a, b, len))
			continue;
		/* They may be equal by now; then this piece was. */
		for (i = 0; i < len; i++) {
			if (READ_ONCE(a[i]) != READ_ONCE(b[i])) {
				desc->bytes += i;
				desc->differs = 1;
				return;
			}
		}
	} while (towpin_piece_done(desc, len) && desc->bytes < desc->len);
}

/* How each opcode uses the memory, for exporters that care. */
static enum dma_data_direction towpin_dst_dir(const struct towpin_desc *desc)
{
	return desc->opcode == TOWPIN_OP_COMPARE ? DMA_FROM_DEVICE :
						   DMA_BIDIRECTIONAL;
}

static int towpin_begin_access(struct towpin_desc *desc)
{
	int ret;

	desc->src_begun = 0;
	desc->dst_begun = 0;
	if (desc->src) {
		ret = towpin_mem_begin_access(desc->src, DMA_FROM_DEVICE);
		if (ret < 0)
			return ret;
		desc->src_begun = ret;
	}
	if (desc->dst) {
		ret = towpin_mem_begin_access(desc->dst, towpin_dst_dir(desc));
		if (ret < 0) {
			towpin_mem_end_access(desc->src, DMA_FROM_DEVICE,
					      desc->src_begun);
			return ret;
		}
		desc->dst_begun = ret;
	}
	return 0;
}

static void towpin_end_access(struct towpin_desc *desc)
{
	towpin_mem_end_access(desc->dst, towpin_dst_dir(desc), desc->dst_begun);
	towpin_mem_end_access(desc->src, DMA_FROM_DEVICE, desc->src_begun);
}

void towpin_memops_run(struct towpin_desc *desc)
{
	if (desc->opcode == TOWPIN_OP_NOP)
		return;
	if (towpin_ctx_closing(desc->ctx)) {
		desc->status = -ECANCELED;
		return;
	}
	desc->status = towpin_begin_access(desc);
	if (desc->status)
		return;

	switch (desc->opcode) {
	case TOWPIN_OP_COPY:
		towpin_copy(desc);
		break;
	case TOWPIN_OP_COPY_CRC:
		desc->crc = ~desc->seed;
		towpin_copy(desc);
		desc->crc = ~desc->crc;
		break;
	case TOWPIN_OP_FILL:
		towpin_fill(desc);
		break;
	case TOWPIN_OP_COMPARE:
		towpin_compare(desc);
		break;
	case TOWPIN_OP_CRC32C:
		desc->crc = ~desc->seed;
		towpin_crc(desc, desc->src, desc->src_off);
		desc->crc = ~desc->crc;
		break;
	}
	towpin_end_access(desc);
}

int towpin_memops_notify(struct towpin_desc *desc)
{
	bool wide = desc->flags & TOWPIN_F_STORE64;
	struct towpin_mem *mem = desc->notify;
	size_t len = wide ? sizeof(u64) : sizeof(u32);
	int begun;
	void *p;

	begun = towpin_mem_begin_access(mem, DMA_BIDIRECTIONAL);
	if (begun < 0)
		return begun;
	p = towpin_mem_span(mem, desc->notify_off, &len);
	/* Whoever sees the value sees the data: make it a release store. */
	smp_mb();
	if (wide)
		WRITE_ONCE(*(u64 *)p, desc->notify_value);
	else
		WRITE_ONCE(*(u32 *)p, desc->notify_value);
	towpin_mem_end_access(mem, DMA_BIDIRECTIONAL, begun);
	return 0;
}

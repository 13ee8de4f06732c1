// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of a descriptor: prepared from user space's entry, given to an
 * engine, completed into its record.
 *
 * Invariants: the entry is our own copy, and nothing of it is believed before
 * it is checked here. A descriptor that is prepared holds its slot and a
 * reference on every handle and eventfd it names, until it is completed, which
 * happens exactly once.
 */
#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/nospec.h>
#include <linux/overflow.h>
#include <linux/rcupdate.h>
#include "engine.h"
#include "trace.h"

/* What an opcode does with the fields of an entry. */
#define USES_SRC	BIT(0)	/* reads src */
#define READS_DST	BIT(1)
#define WRITES_DST	BIT(2)
#define USES_DST	(READS_DST | WRITES_DST)
#define USES_PATTERN	BIT(3)	/* in src_off */
#define USES_SEED	BIT(4)
#define USES_HINT	BIT(5)

static const u8 towpin_opcodes[] = {
	[TOWPIN_OP_NOP] = 0,
	[TOWPIN_OP_COPY] = USES_SRC | WRITES_DST | USES_HINT,
	[TOWPIN_OP_FILL] = WRITES_DST | USES_PATTERN,
	[TOWPIN_OP_COMPARE] = USES_SRC | READS_DST,
	[TOWPIN_OP_CRC32C] = USES_SRC | USES_SEED,
	[TOWPIN_OP_COPY_CRC] = USES_SRC | WRITES_DST | USES_HINT | USES_SEED,
};

#define TOWPIN_F_STORE	(TOWPIN_F_STORE32 | TOWPIN_F_STORE64)
#define TOWPIN_F_ALL	(TOWPIN_F_STORE | TOWPIN_F_EVENTFD)

u64 towpin_desc_opcodes(void)
{
	return BIT_ULL(ARRAY_SIZE(towpin_opcodes)) - 1;
}

static size_t towpin_store_size(u16 flags)
{
	return flags & TOWPIN_F_STORE64 ? sizeof(u64) : sizeof(u32);
}

/* Fields against each other, with no look at what they name. */
static int towpin_op_check(const struct towpin_op *op, unsigned int entries)
{
	u64 end;
	u8 uses;

	if (op->opcode >= ARRAY_SIZE(towpin_opcodes))
		return -EINVAL;
	uses = towpin_opcodes[array_index_nospec(op->opcode,
						 ARRAY_SIZE(towpin_opcodes))];

	if (op->slot >= entries || op->flags & ~TOWPIN_F_ALL ||
	    (op->flags & TOWPIN_F_STORE) == TOWPIN_F_STORE ||
	    op->hint > TOWPIN_HINT_NOCACHE)
		return -EINVAL;

	if ((!(uses & USES_SRC) && op->src) ||
	    (!(uses & (USES_SRC | USES_PATTERN)) && op->src_off) ||
	    (!(uses & USES_DST) && (op->dst || op->dst_off)) ||
	    (!(uses & USES_SEED) && op->seed) ||
	    (!(uses & USES_HINT) && op->hint) ||
	    !(uses & (USES_SRC | USES_DST)) != !op->len)
		return -EINVAL;

	if (op->flags & TOWPIN_F_STORE) {
		if (op->notify_off % towpin_store_size(op->flags))
			return -EINVAL;
		if (op->flags & TOWPIN_F_STORE32 && op->notify_value > U32_MAX)
			return -EINVAL;
	} else if (op->notify || op->notify_off || op->notify_value) {
		return -EINVAL;
	}
	if (op->flags & TOWPIN_F_EVENTFD) {
		if (op->eventfd >= TOWPIN_MAX_EVENTFDS)
			return -EINVAL;
	} else if (op->eventfd) {
		return -EINVAL;
	}

	if (op->len > TOWPIN_MAX_LENGTH ||
	    (uses & USES_SRC && check_add_overflow(op->src_off, op->len, &end)) ||
	    (uses & USES_DST && check_add_overflow(op->dst_off, op->len, &end)))
		return -EOVERFLOW;
	return 0;
}

/* What an entry names, referenced. */
struct towpin_named {
	struct towpin_mem *src;
	struct towpin_mem *dst;
	struct towpin_mem *notify;
	struct towpin_event *event;
};

/*
 * A reference in @out on what @handle names, which must have @rights and contain
 * [@off, @off + @len), which does not wrap. The caller is in an RCU section.
 */
static int towpin_name_mem(struct towpin_ctx *ctx, struct towpin_mem **out,
			   u32 handle, u32 rights, u64 off, u64 len)
{
	struct towpin_mem *mem = towpin_mem_lookup(ctx, handle);
	int ret = 0;

	if (!mem)
		return -ENOENT;
	*out = mem;
	if ((mem->rights & rights) != rights)
		ret = -EACCES;
	else if (off > mem->length || len > mem->length - off)
		ret = -ERANGE;
	return ret;
}

static void towpin_put_mems(struct towpin_mem *src, struct towpin_mem *dst,
			    struct towpin_mem *notify)
{
	struct towpin_mem *mems[] = { src, dst, notify };

	if (src || dst || notify)
		towpin_mem_put_all(mems, ARRAY_SIZE(mems));
}

/* On an error, @named holds what there is to put. */
static int towpin_name_all(struct towpin_ctx *ctx, const struct towpin_op *op,
			   struct towpin_named *named)
{
	u8 uses = towpin_opcodes[array_index_nospec(op->opcode,
						    ARRAY_SIZE(towpin_opcodes))];
	int ret = 0;

	if (!uses && !op->flags)
		return 0;

	rcu_read_lock();
	if (uses & USES_SRC)
		ret = towpin_name_mem(ctx, &named->src, op->src,
				      TOWPIN_RIGHT_READ, op->src_off, op->len);
	if (!ret && uses & USES_DST)
		ret = towpin_name_mem(ctx, &named->dst, op->dst,
				      uses & WRITES_DST ? TOWPIN_RIGHT_WRITE :
							  TOWPIN_RIGHT_READ,
				      op->dst_off, op->len);
	if (!ret && op->flags & TOWPIN_F_STORE) {
		size_t size = towpin_store_size(op->flags);

		ret = towpin_name_mem(ctx, &named->notify, op->notify,
				      TOWPIN_RIGHT_WRITE, op->notify_off, size);
		/* Registered memory may itself begin at an odd address. */
		if (!ret && named->notify->first_off % size)
			ret = -EINVAL;
	}
	rcu_read_unlock();
	if (!ret && op->flags & TOWPIN_F_EVENTFD) {
		named->event = towpin_event_lookup(ctx, op->eventfd);
		if (!named->event)
			ret = -ENOENT;
	}
	return ret;
}

/* Take the slot of @record over from whoever had it and is done. */
static bool towpin_slot_claim(struct towpin_record *record)
{
	u8 status = READ_ONCE(record->status);

	return status != TOWPIN_ST_PENDING &&
	       cmpxchg_acquire(&record->status, status, TOWPIN_ST_PENDING) ==
	       status;
}

/* An offset below the length of its memory, for the CPU's guesses as well. */
static u64 towpin_nospec(u64 off, const struct towpin_mem *mem)
{
	return mem ? array_index_nospec(off, mem->length) : 0;
}

/*
 * Check @op and, if all is well, make its slot's descriptor of it, in @out.
 * Otherwise an errno of TOWPIN_IOC_SUBMIT, and nothing has changed.
 */
int towpin_desc_prepare(struct towpin_ctx *ctx, struct towpin_queue *queue,
			const struct towpin_op *op, struct towpin_desc **out)
{
	struct towpin_named named = {};
	struct towpin_desc *desc;
	unsigned int slot;
	int ret;

	ret = towpin_op_check(op, queue->entries);
	if (ret)
		return ret;
	ret = towpin_name_all(ctx, op, &named);
	if (ret)
		goto err_unname;
	slot = array_index_nospec(op->slot, queue->entries);
	desc = &queue->descs[slot];
	if (!towpin_slot_claim(desc->record)) {
		ret = -EAGAIN;
		goto err_unname;
	}

	desc->src = named.src;
	desc->dst = named.dst;
	desc->notify = named.notify;
	desc->event = named.event;
	desc->id = (u64)ctx->id << 40 |
		   (atomic64_inc_return(&ctx->seq) & GENMASK_ULL(39, 0));
	desc->opcode = op->opcode;
	desc->hint = op->hint;
	desc->flags = op->flags;
	desc->src_off = towpin_nospec(op->src_off, named.src);
	desc->dst_off = towpin_nospec(op->dst_off, named.dst);
	desc->len = op->len;
	desc->pattern = op->src_off;	/* FILL has no source */
	desc->notify_off = towpin_nospec(op->notify_off, named.notify);
	desc->notify_value = op->notify_value;
	desc->seed = op->seed;
	desc->differs = 0;
	desc->status = 0;
	desc->crc = 0;
	desc->bytes = 0;
	desc->submit_ns = 0;
	desc->start_ns = 0;
	*out = desc;
	return 0;

err_unname:
	towpin_put_mems(named.src, named.dst, named.notify);
	if (named.event)
		towpin_event_put(named.event);
	return ret;
}

/* What fits the record's byte: user space's errnos, none of the kernel's own. */
static int towpin_user_errno(int status)
{
	switch (status) {
	case -ERESTARTSYS:
	case -ERESTARTNOINTR:
	case -ERESTARTNOHAND:
	case -ERESTART_RESTARTBLOCK:
		return -EINTR;
	}
	return status < -U8_MAX ? -EIO : status;
}

static void towpin_desc_write_record(const struct towpin_desc *desc)
{
	struct towpin_record *record = desc->record;

	record->result = desc->status ? -towpin_user_errno(desc->status) :
					desc->differs;
	record->engine = desc->engine;
	record->bytes_completed = lower_32_bits(desc->bytes);
	record->bytes = desc->bytes;
	record->crc = desc->crc;
	record->op_id = desc->id;
}

/*
 * The operation is over: tell everybody. What must be seen before what: data,
 * notification store, record, eventfd. Writing the record's status gives the slot
 * up: from there on @desc can be somebody else's. May sleep.
 */
void towpin_desc_complete(struct towpin_desc *desc)
{
	bool out = desc->engine != TOWPIN_ENGINE_INLINE;
	struct towpin_event *event = desc->event;
	struct towpin_ctx *ctx = desc->ctx;

	if (desc->notify && !desc->status)
		desc->status = towpin_memops_notify(desc);
	if (trace_towpin_complete_enabled())
		trace_towpin_complete(desc, ktime_get_ns());
	/* Before the record: who has read it may detach at once. */
	towpin_put_mems(desc->src, desc->dst, desc->notify);

	towpin_desc_write_record(desc);
	if (out) {
		atomic_dec(&ctx->inflight);
		towpin_count(TOWPIN_CNT_INFLIGHT, -1);
	}
	/* Release: user space, and the next owner, read the status first. */
	smp_store_release(&desc->record->status,
			  desc->status ? TOWPIN_ST_ERROR : TOWPIN_ST_SUCCESS);

	atomic64_inc(&ctx->completed);
	if (event) {
		towpin_eventfd_signal(event->eventfd);
		towpin_event_put(event);
	}
	/* Has a barrier, which pairs with that of prepare_to_wait(). */
	if (wq_has_sleeper(&ctx->wait))
		wake_up_all(&ctx->wait);
	if (out)
		towpin_ctx_put(ctx);
}

// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * What an entry must be like: the rules of TOWPIN_IOC_SUBMIT, in the module's
 * order, so that an entry with two faults gets the same error from both.
 *
 * Invariants: an entry that passed names memory that it may use so, for the
 * whole of its ranges, with references that keep it; one that did not pass
 * holds nothing.
 */
#include "user.h"

#include <string.h>

#define R	TOWPIN_RIGHT_READ
#define W	TOWPIN_RIGHT_WRITE

/* What each opcode uses: a right needed on src and dst, and fields. */
static const struct op_rule {
	uint8_t src, dst;
	bool hint, seed, pattern;
} rules[] = {
	[TOWPIN_OP_NOP]		= { 0, 0, false, false, false },
	[TOWPIN_OP_COPY]	= { R, W, true,  false, false },
	[TOWPIN_OP_FILL]	= { 0, W, false, false, true  },
	[TOWPIN_OP_COMPARE]	= { R, R, false, false, false },
	[TOWPIN_OP_CRC32C]	= { R, 0, false, true,  false },
	[TOWPIN_OP_COPY_CRC]	= { R, W, true,  true,  false },
};

#define F_STORE	(TOWPIN_F_STORE32 | TOWPIN_F_STORE64)
#define F_ALL	(F_STORE | TOWPIN_F_EVENTFD)

static uint64_t store_size(const struct towpin_op *op)
{
	return op->flags & TOWPIN_F_STORE64 ? 8 : 4;
}

static bool notify_ok(const struct towpin_op *op)
{
	if (!(op->flags & F_STORE))
		return !op->notify && !op->notify_off && !op->notify_value;
	return op->notify_off % store_size(op) == 0 &&
	       (op->flags & TOWPIN_F_STORE64 || op->notify_value <= UINT32_MAX);
}

/* The fields against each other, with no look at what they name. */
int user_check_fields(const struct user *u, const struct towpin_op *op)
{
	const struct op_rule *rule;
	uint64_t end;

	if (op->opcode >= sizeof(rules) / sizeof(rules[0]))
		return -EINVAL;
	rule = &rules[op->opcode];

	if (op->slot >= u->p.entries || op->flags & ~F_ALL ||
	    (op->flags & F_STORE) == F_STORE ||
	    op->hint > TOWPIN_HINT_NOCACHE || !notify_ok(op))
		return -EINVAL;
	if (op->flags & TOWPIN_F_EVENTFD ? op->eventfd >= TOWPIN_MAX_EVENTFDS :
					   op->eventfd != 0)
		return -EINVAL;
	if ((!rule->src && op->src) || (!rule->dst && op->dst) ||
	    (!rule->src && !rule->pattern && op->src_off) ||
	    (!rule->dst && op->dst_off) || (!rule->seed && op->seed) ||
	    (!rule->hint && op->hint))
		return -EINVAL;
	if (!op->len != !(rule->src | rule->dst))
		return -EINVAL;

	if (op->len > TOWPIN_MAX_LENGTH ||
	    (rule->src && __builtin_add_overflow(op->src_off, op->len, &end)) ||
	    (rule->dst && __builtin_add_overflow(op->dst_off, op->len, &end)))
		return -EOVERFLOW;
	return 0;
}

static int take(struct user *u, uint32_t handle, uint32_t rights, uint64_t off,
		uint64_t len, struct user_mem **result)
{
	struct user_mem *mem = user_mem_get(u, handle);
	int err = 0;

	if (!mem)
		return -ENOENT;
	if ((mem->rights & rights) != rights)
		err = -EACCES;
	else if (off > mem->length || len > mem->length - off)
		err = -ERANGE;
	if (err)
		user_mem_put(u, mem);
	else
		*result = mem;
	return err;
}

static int take_all(struct user *u, struct user_slot *s)
{
	const struct towpin_op *op = &s->op;
	const struct op_rule *rule = &rules[op->opcode];
	int err = 0;

	if (rule->src)
		err = take(u, op->src, rule->src, op->src_off, op->len,
			   &s->src);
	if (!err && rule->dst)
		err = take(u, op->dst, rule->dst, op->dst_off, op->len,
			   &s->dst);
	if (!err && op->flags & F_STORE) {
		err = take(u, op->notify, W, op->notify_off, store_size(op),
			   &s->notify);
		/* Registered memory may itself begin at an odd address. */
		if (!err && (uintptr_t)s->notify->base % store_size(op))
			err = -EINVAL;
	}
	if (!err && op->flags & TOWPIN_F_EVENTFD) {
		s->event = user_event_get(u, op->eventfd);
		if (!s->event)
			err = -ENOENT;
	}
	return err;
}

/* Takes what the entry in @s, whose fields are in order, names. */
int user_check_mems(struct user *u, struct user_slot *s)
{
	int err;

	s->src = NULL;
	s->dst = NULL;
	s->notify = NULL;
	s->event = NULL;
	err = take_all(u, s);
	if (err) {
		user_slot_release(u, s);
		user_event_put(s->event);
	}
	return err;
}

/* The memory only: the event is still to be signalled. */
void user_slot_release(struct user *u, struct user_slot *s)
{
	user_mem_put(u, s->src);
	user_mem_put(u, s->dst);
	user_mem_put(u, s->notify);
}

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Engines: who moves the bytes.
 *
 * An engine is given a descriptor whose handles are referenced and checked. It
 * owns the descriptor from submit() until it calls towpin_desc_complete() on it,
 * exactly once, in a context that may sleep, after which it must not look at it
 * again. It sets status (and bytes, crc, differs); an engine that finds
 * towpin_ctx_closing() may stop with -ECANCELED. It never touches memory but
 * what the descriptor names.
 */
#ifndef TOWPIN_ENGINE_H
#define TOWPIN_ENGINE_H

#include "towpin.h"

struct towpin_engine {
	u8 id;				/* TOWPIN_ENGINE_* */
	void (*submit)(struct towpin_desc *desc);
};

extern const struct towpin_engine towpin_engine_cpu;

int towpin_engine_cpu_init(void);
void towpin_engine_cpu_exit(void);

/* Once for each descriptor of a new queue. */
void towpin_engine_desc_init(struct towpin_desc *desc);

/* Bytes up to which an operation runs in the submitter's own context. */
unsigned int towpin_engine_inline_max(void);

/* memops.c: carry @desc out here and now. */
void towpin_memops_run(struct towpin_desc *desc);

/* The notification store of @desc, which has one: 0 or a negative errno. */
int towpin_memops_notify(struct towpin_desc *desc);

static inline bool towpin_ctx_closing(struct towpin_ctx *ctx)
{
	return READ_ONCE(ctx->closing);
}

#endif /* TOWPIN_ENGINE_H */

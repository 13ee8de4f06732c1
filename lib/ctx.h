/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What the files of the public layer share: the context and its buffers.
 *
 * Invariants: every public call but tow_close() begins with towi_ctx_check(),
 * before it takes a lock, since a lock that another thread of the parent held
 * during fork(2) is never released in the child. Lock order: ctx->buf_lock is
 * never held together with a buffer's lock or with slot_lock.
 */
#ifndef TOWI_CTX_H
#define TOWI_CTX_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "provider.h"

/* The only names that leave the shared library. */
#pragma GCC visibility push(default)
#include "towpin.h"
#pragma GCC visibility pop

#define TOWI_DEFAULT_ENTRIES	256
#define TOWI_DEFAULT_INLINE	16384

struct towi_slot {
	_Atomic uint64_t token;		/* its operation's; 0: none to be had */
	uint64_t generation;		/* belongs to who holds the slot */
};

struct tow_ctx {
	struct towi_provider *prov;
	enum tow_provider provider;
	char reason[256];
	unsigned int spin_ns;		/* time to look before sleeping */

	/* One page that the kernel clears in a forked child; NULL: use pid. */
	unsigned int *owner;
	pid_t pid;

	struct towi_slot *slots;
	pthread_mutex_t slot_lock;
	uint16_t *free_slots;		/* stack, protected by slot_lock */
	unsigned int nr_free;		/* protected by slot_lock */

	pthread_mutex_t buf_lock;
	struct tow_buf *bufs;		/* protected by buf_lock */
};

struct tow_buf {
	struct tow_ctx *ctx;
	struct tow_buf *next;		/* protected by ctx->buf_lock */
	struct tow_buf **link;		/* what points here; ctx->buf_lock */
	int fd;
	uint32_t handle;
	unsigned int rights;
	uint64_t length;
	pthread_mutex_t lock;
	void *addr;			/* protected by lock */
	unsigned int maps;		/* tow_buf_map() calls; by lock */
};

static inline bool towi_ctx_forked(const struct tow_ctx *ctx)
{
	if (ctx->owner)
		return !*ctx->owner;
	return ctx->pid != getpid();
}

static inline int towi_ctx_check(const struct tow_ctx *ctx)
{
	if (!ctx)
		return -EINVAL;
	return towi_ctx_forked(ctx) ? -EPERM : 0;
}

/* op.c */
int towi_slots_init(struct tow_ctx *ctx);
void towi_slots_free(struct tow_ctx *ctx);

/* buffer.c: end all buffers of a context that ends */
void towi_bufs_destroy(struct tow_ctx *ctx, bool forked);

#endif /* TOWI_CTX_H */

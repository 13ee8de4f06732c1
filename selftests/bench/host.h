/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pool of buffers that the host benchmark copies between.
 *
 * Invariants: each pair is written and mapped before anything is timed; the
 * methods take pairs in turn, so that whatever method a pair is used by, as many
 * bytes have gone through the caches since its last use.
 */
#ifndef TOWPIN_BENCH_HOST_H
#define TOWPIN_BENCH_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "towpin.h"

#define MIB(n)		((size_t)(n) << 20)
#define POOL_BYTES	MIB(512)

enum method {
	MEMCPY_OWN,		/* between anonymous mappings */
	MEMCPY_SHARED,		/* between the very buffers libtowpin copies */
	TOW_NORMAL,
	TOW_NOCACHE,
	NR_METHODS
};

struct pair {
	char *src, *dst;		/* the shared buffers, mapped */
	char *own_src, *own_dst;
	struct tow_buf *src_buf, *dst_buf;
	bool used, own_used;		/* so dst is to equal src */
};

struct pool {
	struct tow_ctx *ctx;
	size_t size;		/* of a buffer */
	unsigned int n;		/* pairs */
	unsigned int next;	/* pair to be used */
	struct pair *pairs;
};

bool pool_open(struct pool *pool, struct tow_ctx *ctx, size_t size);
/* Did all that was copied arrive? */
bool pool_verify(const struct pool *pool);
void pool_close(struct pool *pool);

/* One copy with the next pair. */
bool pool_copy(struct pool *pool, enum method method);

#endif /* TOWPIN_BENCH_HOST_H */

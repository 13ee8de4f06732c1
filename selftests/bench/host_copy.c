// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "host.h"

static char *own(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static char *shared(struct tow_ctx *ctx, size_t size, struct tow_buf **buf)
{
	void *at;

	if (tow_buf_create(ctx, size, 0, TOW_NODE_ANY, buf) ||
	    tow_buf_map(*buf, &at))
		return NULL;
	return at;
}

/* Every page of a source differs from its neighbours, and no pair is alike. */
static void fill(char *src, size_t size, unsigned int seed)
{
	uint64_t *at = (uint64_t *)src;
	size_t i;

	for (i = 0; i < size / sizeof(*at); i++)
		at[i] = (i + 1) * 0x9e3779b97f4a7c15 + seed;
}

static bool pair_open(struct pair *p, struct tow_ctx *ctx, size_t size,
		      unsigned int seed)
{
	p->src = shared(ctx, size, &p->src_buf);
	p->dst = shared(ctx, size, &p->dst_buf);
	p->own_src = own(size);
	p->own_dst = own(size);
	if (!p->src || !p->dst || !p->own_src || !p->own_dst)
		return false;
	fill(p->src, size, seed);
	fill(p->own_src, size, seed);
	memset(p->dst, 1, size);
	memset(p->own_dst, 1, size);
	return true;
}

static bool tow_copy(const struct pool *pool, const struct pair *p,
		     uint8_t hint)
{
	struct tow_result result;
	struct tow_op op;

	tow_prep_copy(&op, tow_buf_handle(p->dst_buf), 0,
		      tow_buf_handle(p->src_buf), 0, pool->size);
	op.hint = hint;
	return !tow_run(pool->ctx, &op, &result) && !result.status &&
	       result.bytes == pool->size && result.engine == TOW_ENGINE_CPU;
}

bool pool_copy(struct pool *pool, enum method method)
{
	struct pair *p = &pool->pairs[pool->next];

	pool->next = (pool->next + 1) % pool->n;
	if (method == MEMCPY_OWN)
		p->own_used = true;
	else
		p->used = true;
	switch (method) {
	case MEMCPY_OWN:
		memcpy(p->own_dst, p->own_src, pool->size);
		break;
	case MEMCPY_SHARED:
		memcpy(p->dst, p->src, pool->size);
		break;
	case TOW_NORMAL:
		return tow_copy(pool, p, TOW_HINT_NORMAL);
	case TOW_NOCACHE:
		return tow_copy(pool, p, TOW_HINT_NOCACHE);
	default:
		return false;
	}
	__asm__ volatile("" ::: "memory");
	return true;
}

/* The library has mappings of its own: touch those too, with one copy each. */
bool pool_open(struct pool *pool, struct tow_ctx *ctx, size_t size)
{
	unsigned int i;

	pool->ctx = ctx;
	pool->size = size;
	pool->next = 0;
	pool->n = (unsigned int)(POOL_BYTES / 2 / size);
	pool->pairs = calloc(pool->n, sizeof(*pool->pairs));
	if (!pool->pairs)
		return false;
	for (i = 0; i < pool->n; i++)
		if (!pair_open(&pool->pairs[i], ctx, size, i))
			return false;
	for (i = 0; i < pool->n; i++)
		if (!pool_copy(pool, TOW_NORMAL))
			return false;
	for (i = 0; i < pool->n; i++) {
		memset(pool->pairs[i].dst, 1, size);
		pool->pairs[i].used = false;
	}
	return true;
}

bool pool_verify(const struct pool *pool)
{
	const struct pair *p;
	unsigned int i;

	for (i = 0; i < pool->n; i++) {
		p = &pool->pairs[i];
		if (p->used && memcmp(p->dst, p->src, pool->size))
			return false;
		if (p->own_used && memcmp(p->own_dst, p->own_src, pool->size))
			return false;
	}
	return true;
}

void pool_close(struct pool *pool)
{
	struct pair *p;
	unsigned int i;

	for (i = 0; i < pool->n; i++) {
		p = &pool->pairs[i];
		tow_buf_destroy(p->src_buf);
		tow_buf_destroy(p->dst_buf);
		munmap(p->own_src, pool->size);
		munmap(p->own_dst, pool->size);
	}
	free(pool->pairs);
}

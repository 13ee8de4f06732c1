// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory handles: small integers of one context that operations name.
 *
 * Invariants: the table holds one reference on each mem, each descriptor one
 * more; the last put releases what is behind. A handle is reserved first and
 * published after the last step that can fail. Only DETACH takes a published one
 * out, under the table's lock, so that two of them cannot both win. Lookups run
 * under RCU against that: they count only if they raise a refcount that is not
 * zero.
 */
#include <linux/nospec.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include "towpin.h"
#include "trace.h"

static void towpin_mem_destroy(struct towpin_mem *mem)
{
	if (!mem->dmabuf) {
		towpin_mem_unpin(mem);
	} else {
		if (!mem->buffer) {
			dma_buf_vunmap_unlocked(mem->dmabuf, &mem->map);
			dma_buf_detach(mem->dmabuf, mem->attach);
		}
		dma_buf_put(mem->dmabuf);
	}
	towpin_count(TOWPIN_CNT_HANDLES, -1);
	kfree_rcu(mem, rcu);
}

/* True: it was the last reference, destroy it. The caller is in an RCU section. */
static bool towpin_mem_drop(struct towpin_mem *mem)
{
	if (refcount_dec_and_test(&mem->refs))
		return true;
	/*
	 * Pairs with the barrier of the wait in towpin_mem_drain(). RCU keeps the
	 * mem for this look: its last owner may be freeing it by now.
	 */
	smp_mb__after_atomic();
	if (READ_ONCE(mem->detached))
		wake_up_var(&mem->refs);
	return false;
}

/* Those of @nr that are not NULL. May sleep. */
void towpin_mem_put_all(struct towpin_mem **mems, unsigned int nr)
{
	unsigned int i;

	rcu_read_lock();
	for (i = 0; i < nr; i++)
		if (mems[i] && !towpin_mem_drop(mems[i]))
			mems[i] = NULL;
	rcu_read_unlock();
	for (i = 0; i < nr; i++)
		if (mems[i])
			towpin_mem_destroy(mems[i]);
}

void towpin_mem_put(struct towpin_mem *mem)
{
	towpin_mem_put_all(&mem, 1);
}

/* A reference on what @handle names, or NULL. The caller is in an RCU section. */
struct towpin_mem *towpin_mem_lookup(struct towpin_ctx *ctx, u32 handle)
{
	struct towpin_mem *mem;

	if (handle < TOWPIN_LOW_HANDLES) {
		handle = array_index_nospec(handle, TOWPIN_LOW_HANDLES);
		mem = rcu_dereference(ctx->low_mems[handle]);
	} else {
		mem = xa_load(&ctx->mems, handle);
	}
	if (mem && !refcount_inc_not_zero(&mem->refs))
		mem = NULL;
	return mem;
}

/* Context teardown: nobody can look up any more. */
void towpin_mem_drop_all(struct towpin_ctx *ctx)
{
	struct towpin_mem *mem;
	unsigned long handle;

	xa_for_each(&ctx->mems, handle, mem) {
		xa_erase(&ctx->mems, handle);
		if (handle < TOWPIN_LOW_HANDLES)
			RCU_INIT_POINTER(ctx->low_mems[handle], NULL);
		trace_towpin_detach(ctx->id, handle, mem->length);
		towpin_mem_put(mem);
		cond_resched();		/* there may be 65535 of them */
	}
	xa_destroy(&ctx->mems);
}

/*
 * Another exporter's memory, as a kernel mapping that stays. An exporter that
 * moves its memory unless it is pinned (one with a pin operation) does not
 * promise that; the others keep it in place for as long as it is attached.
 */
static int towpin_mem_attach_foreign(struct towpin_mem *mem)
{
	int ret;

	if (!mem->dmabuf->ops->vmap || mem->dmabuf->ops->pin)
		return -EOPNOTSUPP;
	mem->attach = dma_buf_attach(mem->dmabuf, towpin_device());
	if (IS_ERR(mem->attach)) {
		ret = PTR_ERR(mem->attach);
		goto err;
	}
	ret = dma_buf_vmap_unlocked(mem->dmabuf, &mem->map);
	if (ret)
		goto err_detach;
	if (mem->map.is_iomem) {
		ret = -EOPNOTSUPP;
		goto err_vunmap;
	}
	mem->vaddr = mem->map.vaddr;
	return 0;

err_vunmap:
	dma_buf_vunmap_unlocked(mem->dmabuf, &mem->map);
err_detach:
	dma_buf_detach(mem->dmabuf, mem->attach);
err:
	/* What exporters say beyond this does not mean here what it means there. */
	return ret == -ENOMEM ? ret : -EOPNOTSUPP;
}

/* A mem with one reference, or an error of TOWPIN_IOC_ATTACH. */
struct towpin_mem *towpin_mem_attach(int fd)
{
	struct towpin_mem *mem;
	int ret;

	mem = kzalloc(sizeof(*mem), GFP_KERNEL_ACCOUNT);
	if (!mem)
		return ERR_PTR(-ENOMEM);
	refcount_set(&mem->refs, 1);
	mem->dmabuf = dma_buf_get(fd);
	if (IS_ERR(mem->dmabuf)) {
		ret = PTR_ERR(mem->dmabuf);
		goto err_free;
	}
	mem->length = mem->dmabuf->size;
	mem->rights = towpin_dmabuf_rights(mem->dmabuf);
	mem->buffer = towpin_dmabuf_buffer(mem->dmabuf);
	if (mem->buffer) {
		mem->pages = mem->buffer->pages;
	} else {
		ret = towpin_mem_attach_foreign(mem);
		if (ret)
			goto err_put;
	}
	towpin_count(TOWPIN_CNT_HANDLES, 1);
	return mem;

err_put:
	dma_buf_put(mem->dmabuf);
err_free:
	kfree(mem);
	return ERR_PTR(ret);
}

int towpin_mem_begin_shared(struct towpin_mem *mem, enum dma_data_direction dir)
{
	int ret;

	if (mem->buffer) {
		towpin_dmabuf_begin(mem->buffer);
		return 1;
	}
	ret = dma_buf_begin_cpu_access(mem->dmabuf, dir);
	return ret ? ret : 1;
}

void towpin_mem_end_shared(struct towpin_mem *mem, enum dma_data_direction dir)
{
	if (mem->buffer)
		towpin_dmabuf_end(mem->buffer);
	else
		dma_buf_end_cpu_access(mem->dmabuf, dir);
}

static int towpin_mem_reserve(struct towpin_ctx *ctx, u32 *handle)
{
	int ret = xa_alloc(&ctx->mems, handle, NULL,
			   XA_LIMIT(1, TOWPIN_MAX_HANDLES), GFP_KERNEL_ACCOUNT);

	return ret == -EBUSY ? -ENOSPC : ret;
}

/* The entry is reserved, so storing allocates nothing and cannot fail. */
static void towpin_mem_publish(struct towpin_ctx *ctx, u32 handle,
			       struct towpin_mem *mem)
{
	xa_lock(&ctx->mems);
	__xa_store(&ctx->mems, handle, mem, GFP_KERNEL_ACCOUNT);
	if (handle < TOWPIN_LOW_HANDLES)
		rcu_assign_pointer(ctx->low_mems[handle], mem);
	xa_unlock(&ctx->mems);
}

long towpin_ioctl_attach(struct towpin_ctx *ctx, void *arg,
			 const struct towpin_uarg *uarg)
{
	struct towpin_attach *attach = arg;
	struct towpin_mem *mem;
	int ret;

	if (attach->flags || attach->handle || attach->length ||
	    attach->rights || attach->reserved)
		return -EINVAL;
	mem = towpin_mem_attach(attach->fd);
	if (IS_ERR(mem))
		return PTR_ERR(mem);
	ret = towpin_mem_reserve(ctx, &attach->handle);
	if (ret)
		goto err_put;
	attach->length = mem->length;
	attach->rights = mem->rights;
	ret = towpin_uarg_write(uarg, attach, sizeof(*attach));
	if (ret)
		goto err_erase;
	trace_towpin_attach(ctx->id, attach->handle, mem->length, mem->rights,
			    mem->buffer ? mem->buffer->id : 0);
	towpin_mem_publish(ctx, attach->handle, mem);
	return 0;

err_erase:
	xa_erase(&ctx->mems, attach->handle);
err_put:
	towpin_mem_put(mem);
	return ret;
}

long towpin_ioctl_register(struct towpin_ctx *ctx, void *arg,
			   const struct towpin_uarg *uarg)
{
	struct towpin_register *reg = arg;
	struct towpin_mem *mem;
	int ret;

	if (reg->flags & ~TOWPIN_REG_READ_ONLY || reg->handle || reg->reserved)
		return -EINVAL;
	mem = towpin_mem_register(reg->addr, reg->length, reg->flags);
	if (IS_ERR(mem))
		return PTR_ERR(mem);
	ret = towpin_mem_reserve(ctx, &reg->handle);
	if (ret)
		goto err_put;
	ret = towpin_uarg_write(uarg, reg, sizeof(*reg));
	if (ret)
		goto err_erase;
	trace_towpin_register(ctx->id, reg->handle, mem->length, mem->rights,
			      mem->nr_pinned);
	towpin_mem_publish(ctx, reg->handle, mem);
	return 0;

err_erase:
	xa_erase(&ctx->mems, reg->handle);
err_put:
	towpin_mem_put(mem);
	return ret;
}

/*
 * Wait for the descriptors that name @mem, which is out of the table, and drop
 * the table's reference, which is ours now. dec_if_one rather than a look at the
 * count: a lookup that found the mem just before it left the table either has
 * raised the count by then or finds zero.
 */
static int towpin_mem_drain(struct towpin_mem *mem)
{
	WRITE_ONCE(mem->detached, true);
	if (wait_var_event_killable(&mem->refs,
				    refcount_dec_if_one(&mem->refs))) {
		towpin_mem_put(mem);
		return -EINTR;
	}
	/* After all that was done to the mem under the other references. */
	smp_acquire__after_ctrl_dep();
	towpin_mem_destroy(mem);
	return 0;
}

long towpin_ioctl_detach(struct towpin_ctx *ctx, void *arg,
			 const struct towpin_uarg *uarg)
{
	struct towpin_detach *detach = arg;
	bool nowait = detach->flags & TOWPIN_DETACH_NOWAIT;
	struct towpin_mem *mem;
	u64 length = 0;
	int ret = 0;

	if (detach->flags & ~TOWPIN_DETACH_NOWAIT || detach->reserved)
		return -EINVAL;

	xa_lock(&ctx->mems);
	mem = xa_load(&ctx->mems, detach->handle);
	if (!mem) {
		ret = -ENOENT;
	} else if (nowait && !refcount_dec_if_one(&mem->refs)) {
		ret = -EBUSY;
	} else {
		length = mem->length;
		__xa_erase(&ctx->mems, detach->handle);
		if (detach->handle < TOWPIN_LOW_HANDLES)
			RCU_INIT_POINTER(ctx->low_mems[detach->handle], NULL);
	}
	xa_unlock(&ctx->mems);
	if (ret)
		return ret;

	if (nowait) {
		/* As in towpin_mem_drain(). */
		smp_acquire__after_ctrl_dep();
		towpin_mem_destroy(mem);
	} else {
		ret = towpin_mem_drain(mem);
	}
	trace_towpin_detach(ctx->id, detach->handle, length);
	return ret;
}

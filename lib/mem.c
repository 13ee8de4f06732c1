// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Handles for the caller's own memory.
 *
 * Invariant: a registration that a signal interrupts is begun again, never
 * reported: a caller with a timer could not tell it from an error.
 */
#include "ctx.h"

_Static_assert(TOW_REG_READ_ONLY == TOWPIN_REG_READ_ONLY, "TOW_REG");

int tow_mem_register(struct tow_ctx *ctx, const void *addr, uint64_t length,
		     unsigned int flags, uint32_t *handle)
{
	int err;

	err = towi_ctx_check(ctx);
	if (err)
		return err;
	if (!handle)
		return -EINVAL;
	do {
		err = ctx->prov->ops->register_mem(ctx->prov, (uintptr_t)addr,
						   length, flags, handle);
	} while (err == -EINTR);
	return err;
}

int tow_mem_unregister(struct tow_ctx *ctx, uint32_t handle)
{
	int err;

	err = towi_ctx_check(ctx);
	if (err)
		return err;
	return ctx->prov->ops->detach(ctx->prov, handle, 0);
}

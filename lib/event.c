// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Descriptors that tell of completions.
 *
 * Invariant: the context keeps its own reference to an eventfd, so that the
 * caller may close the descriptor it gave.
 */
#include "ctx.h"

int tow_fd(struct tow_ctx *ctx)
{
	int err;

	err = towi_ctx_check(ctx);
	if (err)
		return err;
	return ctx->prov->ops->fd(ctx->prov);
}

int tow_eventfd_add(struct tow_ctx *ctx, int fd)
{
	int err;

	err = towi_ctx_check(ctx);
	if (err)
		return err;
	if (fd < 0)
		return -EBADF;
	return ctx->prov->ops->eventfd_add(ctx->prov, fd);
}

int tow_eventfd_del(struct tow_ctx *ctx, int index)
{
	int err;

	err = towi_ctx_check(ctx);
	if (err)
		return err;
	if (index < 0)
		return -ENOENT;
	return ctx->prov->ops->eventfd_del(ctx->prov, (uint32_t)index);
}

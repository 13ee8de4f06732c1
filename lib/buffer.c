// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * struct tow_buf: a descriptor, its handle in one context, and a mapping.
 *
 * Invariants: a buffer is in its context's list from its creation to its end;
 * its fd, handle, rights and length never change; it has at most one mapping,
 * which lives as long as tow_buf_map() calls outnumber tow_buf_unmap() calls.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "ctx.h"
#include "map.h"

/* Takes over @fd, also when it fails. */
static int buf_new(struct tow_ctx *ctx, int fd, struct tow_buf **result)
{
	struct towpin_attach at = { .size = sizeof(at) };
	struct tow_buf *buf;
	int err;

	buf = calloc(1, sizeof(*buf));
	if (!buf) {
		close(fd);
		return -ENOMEM;
	}
	err = ctx->prov->ops->attach(ctx->prov, fd, &at);
	if (err) {
		close(fd);
		free(buf);
		return err;
	}

	buf->ctx = ctx;
	buf->fd = fd;
	buf->handle = at.handle;
	buf->length = at.length;
	buf->rights = at.rights;
	pthread_mutex_init(&buf->lock, NULL);

	pthread_mutex_lock(&ctx->buf_lock);
	buf->next = ctx->bufs;
	buf->link = &ctx->bufs;
	if (buf->next)
		buf->next->link = &buf->next;
	ctx->bufs = buf;
	pthread_mutex_unlock(&ctx->buf_lock);
	*result = buf;
	return 0;
}

int tow_buf_create(struct tow_ctx *ctx, uint64_t length, unsigned int flags,
		   int node, struct tow_buf **buf)
{
	uint32_t kernel_node = TOWPIN_NODE_ANY;
	int fd;
	int err;

	err = towi_ctx_check(ctx);
	if (err)
		return err;
	if (!buf || node < TOW_NODE_ANY)
		return -EINVAL;
	if (node != TOW_NODE_ANY)
		kernel_node = (uint32_t)node;

	fd = ctx->prov->ops->buf_create(ctx->prov, length, flags, kernel_node);
	if (fd < 0)
		return fd;
	return buf_new(ctx, fd, buf);
}

int tow_buf_import(struct tow_ctx *ctx, int fd, struct tow_buf **buf)
{
	int err;

	err = towi_ctx_check(ctx);
	if (err)
		return err;
	if (!buf)
		return -EINVAL;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	return buf_new(ctx, fd, buf);
}

/* What is left of a buffer when its handle is gone. */
static void buf_free(struct tow_buf *buf)
{
	if (buf->addr)
		towi_unmap(buf->addr, buf->length);
	close(buf->fd);
	free(buf);
}

void tow_buf_destroy(struct tow_buf *buf)
{
	struct tow_ctx *ctx;

	/* In a forked child the buffer ends with tow_close(). */
	if (!buf || towi_ctx_check(buf->ctx))
		return;
	ctx = buf->ctx;

	pthread_mutex_lock(&ctx->buf_lock);
	*buf->link = buf->next;
	if (buf->next)
		buf->next->link = buf->link;
	pthread_mutex_unlock(&ctx->buf_lock);

	ctx->prov->ops->detach(ctx->prov, buf->handle, 0);
	pthread_mutex_destroy(&buf->lock);
	buf_free(buf);
}

void towi_bufs_destroy(struct tow_ctx *ctx, bool forked)
{
	struct tow_buf *buf;

	/*
	 * A list that another thread was changing when the process forked may
	 * be in two minds: leave such a one to the exit of the child.
	 */
	if (pthread_mutex_trylock(&ctx->buf_lock))
		return;
	while ((buf = ctx->bufs)) {
		ctx->bufs = buf->next;
		if (!forked)
			pthread_mutex_destroy(&buf->lock);
		buf_free(buf);
	}
	pthread_mutex_unlock(&ctx->buf_lock);
}

int tow_buf_derive(struct tow_buf *buf, unsigned int rights)
{
	int err;

	if (!buf)
		return -EINVAL;
	err = towi_ctx_check(buf->ctx);
	if (err)
		return err;
	return buf->ctx->prov->ops->buf_derive(buf->ctx->prov, buf->fd, rights);
}

int tow_buf_map(struct tow_buf *buf, void **addr)
{
	int prot = PROT_READ;
	int err;

	if (!buf || !addr)
		return -EINVAL;
	err = towi_ctx_check(buf->ctx);
	if (err)
		return err;
	if (buf->rights & TOW_RIGHT_WRITE)
		prot |= PROT_WRITE;

	pthread_mutex_lock(&buf->lock);
	if (!buf->maps)
		err = towi_map(buf->fd, buf->length, prot, &buf->addr);
	if (!err) {
		buf->maps++;
		*addr = buf->addr;
	}
	pthread_mutex_unlock(&buf->lock);
	return err;
}

int tow_buf_unmap(struct tow_buf *buf)
{
	void *addr;
	int err;

	if (!buf)
		return -EINVAL;
	err = towi_ctx_check(buf->ctx);
	if (err)
		return err;

	pthread_mutex_lock(&buf->lock);
	if (!buf->maps) {
		err = -EINVAL;
	} else if (!--buf->maps) {
		/* In this order: a child forked in between must not unmap it. */
		addr = buf->addr;
		buf->addr = NULL;
		towi_unmap(addr, buf->length);
	}
	pthread_mutex_unlock(&buf->lock);
	return err;
}

/* These four tell what never changes, and so work in a forked child too. */

int tow_buf_fd(const struct tow_buf *buf)
{
	return buf->fd;
}

uint64_t tow_buf_length(const struct tow_buf *buf)
{
	return buf->length;
}

unsigned int tow_buf_rights(const struct tow_buf *buf)
{
	return buf->rights;
}

uint32_t tow_buf_handle(const struct tow_buf *buf)
{
	return buf->handle;
}

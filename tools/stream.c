// SPDX-License-Identifier: GPL-2.0-only
/*
 * The operations of one side of a transfer.
 *
 * Invariants: harvested <= submitted <= harvested + slots; operations finish in
 * any order but are harvested in that of the chunks, so that the CRC is that of
 * the stream; stream_end() returns with none in flight.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stream.h"
#include "tool.h"

/* After the ring was made. */
int stream_start(struct stream *st)
{
	st->submitted = 0;
	st->harvested = 0;
	st->bytes = 0;
	st->crc = 0;
	st->slot = calloc(st->ring.slots, sizeof(*st->slot));
	if (!st->slot)
		return fail(-ENOMEM, "out of memory");
	return 0;
}

/* The operation of chunk st->submitted, which becomes the next one. */
int stream_submit(struct stream *st, const struct tow_op *op)
{
	unsigned int s = st->submitted % st->ring.slots;
	int err;

	err = tow_submit(st->ring.ctx, op, 1, &st->slot[s].token);
	if (err < 0)
		return fail(err, "cannot submit an operation: %s",
			    strerror(-err));
	st->slot[s].length = op->len;
	st->submitted++;
	return 0;
}

static int take(struct stream *st, const struct tow_result *result)
{
	uint32_t length = st->slot[st->harvested % st->ring.slots].length;

	st->harvested++;
	if (result->status < 0)
		return fail(result->status, "an operation failed: %s",
			    strerror(-result->status));
	if (result->bytes != length)
		return fail(-EIO, "an operation ended early: %llu of %u bytes",
			    (unsigned long long)result->bytes, length);
	st->crc = tow_crc32c_combine(st->crc, result->crc, length);
	st->bytes += length;
	return 0;
}

/* 1: harvested; 0: not done yet, unless @wait. */
static int harvest_one(struct stream *st, bool wait)
{
	tow_token token = st->slot[st->harvested % st->ring.slots].token;
	struct tow_result result;
	int ret;

	if (wait)
		ret = tow_wait(st->ring.ctx, token, TOW_TIMEOUT_NONE, &result);
	else
		ret = tow_test(st->ring.ctx, token, &result);
	if (ret < 0)
		return fail(ret, "cannot wait for an operation: %s",
			    strerror(-ret));
	if (!wait && !ret)
		return 0;
	ret = take(st, &result);
	return ret ? ret : 1;
}

/* What is done by now. */
int stream_harvest(struct stream *st)
{
	int ret = 1;

	while (ret > 0 && st->harvested < st->submitted)
		ret = harvest_one(st, false);
	return ret < 0 ? ret : 0;
}

/* Sleeps until the first @chunks are done; engines always finish. */
int stream_harvest_until(struct stream *st, uint64_t chunks)
{
	int ret = 1;

	while (ret > 0 && st->harvested < chunks)
		ret = harvest_one(st, true);
	return ret < 0 ? ret : 0;
}

void stream_end(struct stream *st)
{
	struct tow_result result;
	tow_token token;

	/* their results no longer matter, only that memory is not touched */
	while (st->harvested < st->submitted) {
		token = st->slot[st->harvested++ % st->ring.slots].token;
		tow_wait(st->ring.ctx, token, TOW_TIMEOUT_NONE, &result);
	}
	free(st->slot);
	st->slot = NULL;
	ring_destroy(&st->ring);
}

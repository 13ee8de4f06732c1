/* SPDX-License-Identifier: GPL-2.0-only */
/* The operations of one side of a transfer; see stream.c. */
#ifndef STREAM_H
#define STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "ring.h"
#include "towpin.h"

struct stream {
	struct ring ring;
	uint64_t submitted;	/* chunks whose operation was submitted */
	uint64_t harvested;	/* chunks whose operation is done */
	uint64_t bytes;		/* of the harvested chunks */
	uint32_t crc;		/* of the harvested chunks */
	struct {
		tow_token token;
		uint32_t length;
	} *slot;		/* indexed by chunk % ring.slots */
};

int stream_start(struct stream *st);
int stream_submit(struct stream *st, const struct tow_op *op);
int stream_harvest(struct stream *st);
int stream_harvest_until(struct stream *st, uint64_t chunks);
void stream_end(struct stream *st);

#endif /* STREAM_H */

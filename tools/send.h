/* SPDX-License-Identifier: GPL-2.0-only */
/* One tow send: its options in send.c, its work in send_run.c. */
#ifndef SEND_H
#define SEND_H

#include <stdbool.h>
#include <stdint.h>

#include "stream.h"
#include "wire.h"

struct send {
	/* options */
	const char *name, *path;
	uint64_t timeout;
	uint64_t slots, slot_size;
	bool sized, any_user, json, quiet;
	/* state */
	struct tow_ctx *ctx;
	int input;
	bool slow_input;	/* may make us wait: not a disk's */
	struct peer peer;
	bool left;		/* a receiver has, before READY */
	struct stream st;
	uint64_t credited;	/* chunks that the receiver is done with */
	uint32_t fill;		/* bytes in the slot of chunk st.submitted */
	bool eof;
	enum wire_reason reason;	/* of an error, for the receiver */
};

int send_run(struct send *s);

#endif /* SEND_H */

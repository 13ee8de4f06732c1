/* SPDX-License-Identifier: GPL-2.0-only */
/* One tow recv: its options in recv.c, its work in recv_run.c. */
#ifndef RECV_H
#define RECV_H

#include <stdbool.h>
#include <stdint.h>

#include "output.h"
#include "rendezvous.h"
#include "stream.h"
#include "wire.h"

struct recv {
	/* options */
	const char *name, *path;
	uint64_t timeout;
	bool any_user, json, quiet, force, sync;
	/* state */
	struct tow_ctx *ctx;
	struct output out;
	struct rdv_claim claim;
	struct peer peer;
	struct stream st;
	uint64_t written;	/* chunks written out and credited */
	bool ended;		/* END has come: */
	struct wire_end end;
	enum wire_reason reason;	/* of an error, for the sender */
};

int recv_run(struct recv *r);

#endif /* RECV_H */

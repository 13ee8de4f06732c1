/* SPDX-License-Identifier: GPL-2.0-only */
/* Finding the peer by a name; see rendezvous.c. */
#ifndef RENDEZVOUS_H
#define RENDEZVOUS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

#define RDV_TIMEOUT	(UINT64_C(30) * 1000000000)	/* ns */
#define RDV_HELLO	(UINT64_C(5) * 1000000000)	/* ns, to answer */

/* A receiver's claim on a name. */
struct rdv_claim {
	const char *name;
	int dir_fd, lock_fd, listen_fd;
	bool bound;
};

void rdv_name_check(const char *name);
int rdv_open_dir(bool any_user);
int rdv_claim(struct rdv_claim *claim, const char *name, bool any_user);
int rdv_accept(struct rdv_claim *claim, struct peer *peer, bool any_user,
	       uint64_t deadline);
void rdv_unlisten(struct rdv_claim *claim);
void rdv_release(struct rdv_claim *claim);
int rdv_connect(int dir_fd, const char *name, struct peer *peer, bool any_user,
		uint64_t deadline, const char **missing);
int rdv_pause(uint64_t deadline);
int rdv_wait(struct peer *peer, uint64_t deadline);

#endif /* RENDEZVOUS_H */

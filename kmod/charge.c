// SPDX-License-Identifier: GPL-2.0-only
/*
 * RLIMIT_MEMLOCK: pages held are counted in the user's locked_vm, the counter
 * that io_uring, BPF and perf share, so that one limit covers them all. A charge
 * belongs to the user who made it and is given back to that user, whoever ends
 * the object. Holders of CAP_IPC_LOCK are not charged, as with mlock(2).
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include "towpin.h"

/* -ENOMEM: over the limit, nothing charged. */
int towpin_charge(struct towpin_charge *charge, unsigned long pages)
{
	charge->user = NULL;
	charge->pages = 0;
	if (capable(CAP_IPC_LOCK))
		return 0;
	charge->user = get_uid(current_user());
	if (towpin_charge_more(charge, pages)) {
		free_uid(charge->user);
		charge->user = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* The same for an object that has a charge already, which stays as it was. */
int towpin_charge_more(struct towpin_charge *charge, unsigned long pages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct user_struct *user = charge->user;
	long was, now;

	if (!user)
		return 0;
	was = atomic_long_read(&user->locked_vm);
	do {
		if (check_add_overflow(was, (long)pages, &now) ||
		    (unsigned long)now > limit)
			return -ENOMEM;
	} while (!atomic_long_try_cmpxchg(&user->locked_vm, &was, now));

	charge->pages += pages;
	towpin_count(TOWPIN_CNT_CHARGED_PAGES, pages);
	return 0;
}

void towpin_uncharge(struct towpin_charge *charge)
{
	if (!charge->user)
		return;
	towpin_count(TOWPIN_CNT_CHARGED_PAGES, -(long)charge->pages);
	atomic_long_sub(charge->pages, &charge->user->locked_vm);
	free_uid(charge->user);
	charge->user = NULL;
}

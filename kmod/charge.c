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
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct user_struct *user = current_user();
	long was, now;

	charge->user = NULL;
	charge->pages = pages;
	if (capable(CAP_IPC_LOCK))
		return 0;

	was = atomic_long_read(&user->locked_vm);
	do {
		if (check_add_overflow(was, (long)pages, &now) ||
		    (unsigned long)now > limit)
			return -ENOMEM;
	} while (!atomic_long_try_cmpxchg(&user->locked_vm, &was, now));

	charge->user = get_uid(user);
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

// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The user provider: memfd buffers and worker threads in place of the module.
 *
 * Invariants: workers block all signals, so that no handler of the program runs
 * on them; they are joined before anything they use goes; a forked child, which
 * has no workers, only frees memory and closes descriptors.
 */
#include "user.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "towpin.h"

static int user_info(struct towi_provider *p, struct towpin_info *info)
{
	struct user *u = to_user(p);

	*info = (struct towpin_info) {
		.size = sizeof(*info),
		.abi_version = TOWPIN_ABI_VERSION,
		.engines = 1u << TOWPIN_ENGINE_INLINE | 1u << TOWPIN_ENGINE_CPU,
		.opcodes = (1u << (TOWPIN_OP_COPY_CRC + 1)) - 1,
		.max_entries = TOWPIN_MAX_ENTRIES,
		.max_handles = TOWPIN_MAX_HANDLES,
		.max_eventfds = TOWPIN_MAX_EVENTFDS,
		.inline_max = u->inline_max,
		.max_length = TOWPIN_MAX_LENGTH,
		.entries = p->entries,
		.inflight = atomic_load(&u->inflight),
	};
	return 0;
}

static void user_free(struct user *u, bool forked)
{
	int fd = atomic_load(&u->count_fd);

	user_mem_exit(u, forked);
	user_events_exit(u, forked);
	if (fd >= 0)
		close(fd);
	if (!forked) {
		pthread_cond_destroy(&u->completed);
		pthread_mutex_destroy(&u->wait_lock);
		pthread_cond_destroy(&u->queue_filled);
		pthread_mutex_destroy(&u->queue_lock);
		pthread_mutex_destroy(&u->event_lock);
		pthread_cond_destroy(&u->mem_idle);
		pthread_mutex_destroy(&u->mem_lock);
	}
	free(u->slots);
	free(u->records);
	free(u);
}

static void user_close(struct towi_provider *p, bool forked)
{
	struct user *u = to_user(p);
	unsigned int i;

	if (!forked) {
		user_queue_stop(u);
		for (i = 0; i < u->nr_workers; i++)
			pthread_join(u->workers[i], NULL);
	}
	user_free(u, forked);
}

static const struct towi_provider_ops user_ops = {
	.info = user_info,
	.buf_create = user_buf_create,
	.buf_derive = user_buf_derive,
	.buf_info = user_buf_info,
	.attach = user_attach,
	.register_mem = user_register,
	.detach = user_detach,
	.submit = user_submit,
	.wait = user_wait,
	.eventfd_add = user_eventfd_add,
	.eventfd_del = user_eventfd_del,
	.fd = user_fd,
	.close = user_close,
};

/* As many as can be had, of @want; one will do. */
static int workers_start(struct user *u, unsigned int want)
{
	sigset_t all, old;
	int err = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (u->nr_workers < want && !err) {
		err = pthread_create(&u->workers[u->nr_workers], NULL,
				     user_worker, u);
		if (!err)
			pthread_setname_np(u->workers[u->nr_workers++],
					   "tow-worker");
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return u->nr_workers ? 0 : -err;
}

static int records_init(struct user *u, uint32_t entries)
{
	uint32_t i;
	int err;

	u->slots = calloc(entries, sizeof(*u->slots));
	if (!u->slots)
		return -ENOMEM;
	err = posix_memalign((void **)&u->records, 64,
			     entries * sizeof(*u->records));
	if (err)
		return -err;
	memset(u->records, 0, entries * sizeof(*u->records));
	for (i = 0; i < entries; i++)
		u->records[i].status = TOWPIN_ST_UNUSED;
	u->p.records = u->records;
	u->p.entries = entries;
	return 0;
}

int towi_user_open(const struct tow_open_opts *opts, struct towi_provider **p)
{
	pthread_condattr_t monotonic;
	struct user *u;
	int err;

	u = calloc(1, sizeof(*u) + opts->workers * sizeof(u->workers[0]));
	if (!u)
		return -ENOMEM;
	u->p.ops = &user_ops;
	u->inline_max = opts->inline_max;
	u->queue_end = &u->queue;
	atomic_init(&u->count_fd, -1);
	pthread_mutex_init(&u->mem_lock, NULL);
	pthread_cond_init(&u->mem_idle, NULL);
	pthread_mutex_init(&u->event_lock, NULL);
	pthread_mutex_init(&u->queue_lock, NULL);
	pthread_cond_init(&u->queue_filled, NULL);
	pthread_mutex_init(&u->wait_lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&u->completed, &monotonic);
	pthread_condattr_destroy(&monotonic);

	err = user_mem_init(u);
	if (!err)
		err = records_init(u, opts->entries);
	if (!err)
		err = workers_start(u, opts->workers);
	if (err) {
		user_free(u, false);
		return err;
	}
	*p = &u->p;
	return 0;
}

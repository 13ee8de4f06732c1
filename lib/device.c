// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Contexts: opening one on the right provider, closing it, telling about it.
 *
 * Invariants: a context is whole before the caller sees it; @reason is final
 * by then; closing in a forked child takes no lock without trying it first and
 * touches nothing that the parent can see.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "ctx.h"

#define MAX_WORKERS	256

/* About what a sleep and a wake-up cost. */
#define SPIN_NS		5000

_Static_assert(TOW_ENGINE_CPU == TOWPIN_ENGINE_CPU, "enum tow_engine");
_Static_assert(TOW_ENGINE_INLINE == TOWPIN_ENGINE_INLINE, "enum tow_engine");
_Static_assert(sizeof(struct towpin_op) == 64, "struct towpin_op");
_Static_assert(sizeof(struct towpin_record) == 32, "struct towpin_record");

static unsigned int count_cpus(void)
{
	cpu_set_t set;

	/* Fails where there are more CPUs than the set holds: many. */
	if (sched_getaffinity(0, sizeof(set), &set))
		return CPU_SETSIZE;
	return (unsigned int)CPU_COUNT(&set);
}

/* The caller's options, or the defaults, with every default filled in. */
static int opts_read(struct tow_open_opts *to, const struct tow_open_opts *from)
{
	const unsigned char *bytes = (const unsigned char *)from;
	size_t i;

	memset(to, 0, sizeof(*to));
	if (from) {
		if (from->size < sizeof(*to))
			return -EINVAL;
		for (i = sizeof(*to); i < from->size; i++)
			if (bytes[i])
				return -E2BIG;
		*to = *from;
	}
	to->size = sizeof(*to);

	if (to->provider > TOW_PROVIDER_USER ||
	    to->entries > TOWPIN_MAX_ENTRIES || to->workers > MAX_WORKERS)
		return -EINVAL;
	if (!to->entries)
		to->entries = TOWI_DEFAULT_ENTRIES;
	if (!to->inline_max)
		to->inline_max = TOWI_DEFAULT_INLINE;
	if (!to->workers) {
		/* A few streams fill a memory controller; more only compete. */
		to->workers = count_cpus();
		if (to->workers > 8)
			to->workers = 8;
	}
	return 0;
}

/* Resolves AUTO by the environment; says whether that is where it came from. */
static int provider_from_env(enum tow_provider *provider, bool *asked)
{
	const char *name = getenv("TOW_PROVIDER");

	*asked = false;
	if (*provider != TOW_PROVIDER_AUTO || !name || !*name)
		return 0;
	if (!strcmp(name, "kmod"))
		*provider = TOW_PROVIDER_KMOD;
	else if (!strcmp(name, "user"))
		*provider = TOW_PROVIDER_USER;
	else if (strcmp(name, "auto"))
		return -EINVAL;
	*asked = *provider != TOW_PROVIDER_AUTO;
	return 0;
}

static int provider_open(struct tow_ctx *ctx, const struct tow_open_opts *opts)
{
	enum tow_provider want = opts->provider;
	bool env;
	int err;

	err = provider_from_env(&want, &env);
	if (err)
		return err;

	if (want != TOW_PROVIDER_USER) {
		err = towi_kmod_open(opts, &ctx->prov, ctx->reason,
				     sizeof(ctx->reason));
		if (!err) {
			ctx->provider = TOW_PROVIDER_KMOD;
			ctx->reason[0] = '\0';
			return 0;
		}
		if (want == TOW_PROVIDER_KMOD)
			return err;
	} else {
		snprintf(ctx->reason, sizeof(ctx->reason),
			 "the user provider was chosen by %s",
			 env ? "$TOW_PROVIDER" : "the program");
	}
	ctx->provider = TOW_PROVIDER_USER;
	return towi_user_open(opts, &ctx->prov);
}

/* Without it (before Linux 4.14) every call asks for the pid. */
static void owner_init(struct tow_ctx *ctx)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned int *owner;

	ctx->pid = getpid();
	owner = mmap(NULL, page, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (owner == MAP_FAILED)
		return;
	if (madvise(owner, page, MADV_WIPEONFORK)) {
		munmap(owner, page);
		return;
	}
	*owner = 1;
	ctx->owner = owner;
}

static void ctx_free(struct tow_ctx *ctx)
{
	if (ctx->owner)
		munmap(ctx->owner, (size_t)sysconf(_SC_PAGESIZE));
	towi_slots_free(ctx);
	free(ctx);
}

int tow_open(struct tow_ctx **result, const struct tow_open_opts *opts)
{
	struct tow_open_opts full;
	struct tow_ctx *ctx;
	int err;

	if (!result)
		return -EINVAL;
	err = opts_read(&full, opts);
	if (err)
		return err;

	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return -ENOMEM;
	pthread_mutex_init(&ctx->slot_lock, NULL);
	pthread_mutex_init(&ctx->buf_lock, NULL);
	/* With one CPU, looking keeps the worker from working. */
	ctx->spin_ns = count_cpus() > 1 ? SPIN_NS : 0;

	err = provider_open(ctx, &full);
	if (err)
		goto err_free;
	err = towi_slots_init(ctx);
	if (err)
		goto err_close;
	owner_init(ctx);
	*result = ctx;
	return 0;

err_close:
	ctx->prov->ops->close(ctx->prov, false);
err_free:
	ctx_free(ctx);
	return err;
}

void tow_close(struct tow_ctx *ctx)
{
	bool forked;

	if (!ctx)
		return;
	forked = towi_ctx_forked(ctx);

	/* Buffers later: an operation in flight may still be writing to one. */
	ctx->prov->ops->close(ctx->prov, forked);
	towi_bufs_destroy(ctx, forked);
	if (!forked) {
		pthread_mutex_destroy(&ctx->slot_lock);
		pthread_mutex_destroy(&ctx->buf_lock);
	}
	ctx_free(ctx);
}

static uint64_t memlock_limit(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_MEMLOCK, &lim) || lim.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return lim.rlim_cur;
}

int tow_info(struct tow_ctx *ctx, struct tow_info *info)
{
	struct towpin_info from = { .size = sizeof(from) };
	struct tow_info to = { .size = sizeof(to) };
	size_t size;
	int err;

	err = towi_ctx_check(ctx);
	if (err)
		return err;
	if (!info || info->size < sizeof(to))
		return -EINVAL;
	err = ctx->prov->ops->info(ctx->prov, &from);
	if (err)
		return err;

	to.provider = ctx->provider;
	to.engines = from.engines;
	to.entries = from.entries;
	to.max_handles = from.max_handles;
	to.max_eventfds = from.max_eventfds;
	to.inline_max = from.inline_max;
	to.inflight = from.inflight;
	to.max_length = from.max_length;
	to.memlock = memlock_limit();
	memcpy(to.reason, ctx->reason, sizeof(to.reason));

	/* A caller newer than this library finds zeroes in what it added. */
	size = info->size;
	memset(info, 0, size);
	memcpy(info, &to, sizeof(to));
	info->size = size;
	return 0;
}

const char *tow_version(void)
{
	return TOW_VERSION;
}

// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * From SUBMIT to the completion record, in the user provider.
 *
 * Invariants: what must be seen before what: data, notification store, record,
 * eventfd. The final status is the last that is written to a slot and its
 * record, since the next submitter may be using them then. A sleeper is never
 * missed: it announces itself before it looks at the records, and a worker
 * looks for sleepers after it wrote one, all in one order (sequential
 * consistency).
 */
#include "user.h"

#include <string.h>
#include <time.h>

static uint8_t status_of(const struct user *u, uint32_t slot)
{
	return __atomic_load_n(&u->records[slot].status, __ATOMIC_SEQ_CST);
}

static void complete(struct user *u, struct user_slot *s,
		     const struct user_outcome *out, uint8_t engine)
{
	struct towpin_record *rec = &u->records[s->op.slot];
	struct user_event *event = s->event;

	user_slot_release(u, s);
	rec->result = out->result;
	rec->engine = engine;
	rec->reserved = 0;
	rec->bytes_completed = (uint32_t)out->bytes;
	rec->bytes = out->bytes;
	rec->crc = out->crc;
	rec->op_id = 0;
	atomic_fetch_sub(&u->inflight, 1);
	__atomic_store_n(&rec->status,
			 out->failed ? TOWPIN_ST_ERROR : TOWPIN_ST_SUCCESS,
			 __ATOMIC_SEQ_CST);

	user_count(u);
	if (event) {
		user_event_signal(event);
		user_event_put(event);
	}
	if (atomic_load(&u->sleepers)) {
		pthread_mutex_lock(&u->wait_lock);
		pthread_cond_broadcast(&u->completed);
		pthread_mutex_unlock(&u->wait_lock);
	}
}

static void run(struct user *u, struct user_slot *s, uint8_t engine)
{
	struct user_outcome out = { 0 };

	if (atomic_load(&u->closing)) {
		out.failed = true;
		out.result = ECANCELED;
	} else {
		user_run(u, s, &out);
	}
	if (out.failed && out.result == ECANCELED)
		engine = TOWPIN_ENGINE_NONE;
	complete(u, s, &out, engine);
}

/* ---- workers ---- */

static void enqueue(struct user *u, struct user_slot *s)
{
	s->next = NULL;
	pthread_mutex_lock(&u->queue_lock);
	*u->queue_end = s;
	u->queue_end = &s->next;
	pthread_cond_signal(&u->queue_filled);
	pthread_mutex_unlock(&u->queue_lock);
}

/* NULL: nothing left, and nothing will come. */
static struct user_slot *dequeue(struct user *u)
{
	struct user_slot *s;

	pthread_mutex_lock(&u->queue_lock);
	while (!u->queue && !atomic_load(&u->closing))
		pthread_cond_wait(&u->queue_filled, &u->queue_lock);
	s = u->queue;
	if (s) {
		u->queue = s->next;
		if (!u->queue)
			u->queue_end = &u->queue;
	}
	pthread_mutex_unlock(&u->queue_lock);
	return s;
}

void *user_worker(void *arg)
{
	struct user *u = arg;
	struct user_slot *s;

	while ((s = dequeue(u)))
		run(u, s, TOWPIN_ENGINE_CPU);
	return NULL;
}

/* What is queued and what runs is cancelled; the workers then end. */
void user_queue_stop(struct user *u)
{
	pthread_mutex_lock(&u->queue_lock);
	atomic_store(&u->closing, true);
	pthread_cond_broadcast(&u->queue_filled);
	pthread_mutex_unlock(&u->queue_lock);
}

/* ---- submit ---- */

/* The slot is ours when this is true: its record says PENDING then. */
static bool claim(struct user *u, uint32_t slot)
{
	uint8_t former = status_of(u, slot);

	return former != TOWPIN_ST_PENDING &&
	       __atomic_compare_exchange_n(&u->records[slot].status, &former,
					   TOWPIN_ST_PENDING, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* A refused entry never shows as PENDING: nobody would wake who waits for it. */
static int submit_one(struct user *u, const struct towpin_op *op)
{
	struct user_slot named = { .op = *op };
	struct user_slot *s;
	int err;

	err = user_check_fields(u, op);
	if (!err)
		err = user_check_mems(u, &named);
	if (err)
		return err;
	if (!claim(u, op->slot)) {
		user_slot_release(u, &named);
		user_event_put(named.event);
		return -EAGAIN;
	}

	s = &u->slots[op->slot];
	*s = named;
	atomic_fetch_add(&u->inflight, 1);
	if (op->len <= u->inline_max)
		run(u, s, TOWPIN_ENGINE_INLINE);
	else
		enqueue(u, s);
	return 0;
}

int user_submit(struct towi_provider *p, const struct towpin_op *ops,
		uint32_t nr, uint32_t *accepted)
{
	struct user *u = to_user(p);
	int err;

	*accepted = 0;
	if (!nr || nr > TOWPIN_MAX_ENTRIES)
		return -EINVAL;
	do {
		err = submit_one(u, &ops[*accepted]);
	} while (!err && ++*accepted < nr);
	return err;
}

/* ---- wait ---- */

static uint32_t count_done(const struct user *u, const uint32_t *slots,
			   uint32_t nr)
{
	uint32_t done = 0;
	uint32_t i;

	for (i = 0; i < nr; i++)
		done += status_of(u, slots ? slots[i] : i) !=
			TOWPIN_ST_PENDING;
	return done;
}

/* Holding wait_lock; 0, or -ETIME. */
static int sleep_until(struct user *u, uint64_t deadline)
{
	struct timespec ts;

	if (deadline == TOWI_DEADLINE_LOOK)
		return -ETIME;
	/* Also what a 32-bit time_t cannot hold: 68 years from the boot. */
	if (deadline / 1000000000 > INT32_MAX) {
		pthread_cond_wait(&u->completed, &u->wait_lock);
		return 0;
	}
	ts.tv_sec = (time_t)(deadline / 1000000000);
	ts.tv_nsec = (long)(deadline % 1000000000);
	if (pthread_cond_timedwait(&u->completed, &u->wait_lock, &ts))
		return -ETIME;
	return 0;
}

int user_wait(struct towi_provider *p, const uint32_t *slots, uint32_t nr,
	      uint32_t min, uint64_t deadline, uint32_t *done)
{
	struct user *u = to_user(p);
	uint32_t i;
	int err = 0;

	if (!nr)
		slots = NULL;
	for (i = 0; i < nr; i++)
		if (slots[i] >= p->entries)
			return -EINVAL;
	if (!nr)
		nr = p->entries;
	if (nr > p->entries || !min || min > nr)
		return -EINVAL;

	atomic_fetch_add(&u->sleepers, 1);
	pthread_mutex_lock(&u->wait_lock);
	while ((*done = count_done(u, slots, nr)) < min && !err)
		err = sleep_until(u, deadline);
	pthread_mutex_unlock(&u->wait_lock);
	atomic_fetch_sub(&u->sleepers, 1);
	return *done >= min ? 0 : err;
}

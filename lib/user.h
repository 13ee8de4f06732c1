/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The user provider: what its files share.
 *
 * Lifetimes: a user_mem or user_event is held by its table and by each
 * operation in flight that names it. Who drops the last reference frees an
 * event; a memory is freed by the detach() that waits for that moment.
 *
 * Locks, none taken inside another: mem_lock (handles), event_lock (eventfds),
 * queue_lock (operations that wait for a worker), wait_lock (sleepers).
 *
 * A slot belongs to the submitter from the moment it set the record to PENDING,
 * then to the worker until it writes the final status; nothing of the slot is
 * touched after that.
 */
#ifndef TOWI_USER_H
#define TOWI_USER_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "provider.h"

/* What a handle names, mapped in this process. */
struct user_mem {
	_Atomic uint32_t refs;
	bool idle;		/* no reference left, protected by mem_lock */
	bool mapped;		/* base is a mapping of our own */
	bool is_file;		/* dev and ino tell which one */
	uint32_t rights;	/* TOWPIN_RIGHT_* */
	int sync_fd;		/* dma-buf to bracket accesses with, or -1 */
	char *base;
	uint64_t length;
	dev_t dev;
	ino_t ino;
};

struct user_event {
	_Atomic uint32_t refs;
	int fd;
};

/* An operation between submission and completion. */
struct user_slot {
	struct towpin_op op;
	struct user_mem *src;		/* NULL: the operation has none */
	struct user_mem *dst;
	struct user_mem *notify;
	struct user_event *event;
	struct user_slot *next;		/* protected by queue_lock */
};

/* What becomes of one, before it is made public in the record. */
struct user_outcome {
	uint8_t result;
	bool failed;			/* @result is an errno */
	uint32_t crc;
	uint64_t bytes;
};

struct user {
	struct towi_provider p;
	struct towpin_record *records;
	struct user_slot *slots;
	uint32_t inline_max;
	_Atomic uint32_t inflight;
	_Atomic bool closing;

	pthread_mutex_t mem_lock;
	pthread_cond_t mem_idle;	/* some user_mem.idle became true */
	struct user_mem **mems;		/* by handle; protected by mem_lock */
	uint16_t *spare_handles;	/* a ring, given back; by mem_lock */
	uint32_t nr_spare, first_spare;	/* by mem_lock */
	uint32_t next_handle;		/* never used so far; by mem_lock */

	pthread_mutex_t event_lock;
	/* protected by event_lock */
	struct user_event *events[TOWPIN_MAX_EVENTFDS];

	pthread_mutex_t queue_lock;
	pthread_cond_t queue_filled;
	struct user_slot *queue;	/* first to run; by queue_lock */
	struct user_slot **queue_end;	/* by queue_lock */

	pthread_mutex_t wait_lock;
	pthread_cond_t completed;
	_Atomic uint32_t sleepers;

	_Atomic int count_fd;		/* eventfd of fd(); -1: nobody asked */
	_Atomic uint64_t uncounted;	/* completions that it does not show */

	unsigned int nr_workers;
	pthread_t workers[];
};

static inline struct user *to_user(struct towi_provider *p)
{
	return (struct user *)((char *)p - offsetof(struct user, p));
}

/* user_buf.c */
int user_buf_create(struct towi_provider *p, uint64_t length, uint32_t flags,
		    uint32_t node);
int user_buf_derive(struct towi_provider *p, int fd, uint32_t rights);
int user_buf_info(struct towi_provider *p, int fd,
		  struct towpin_buf_info *info);

/* user_mem.c */
int user_mem_init(struct user *u);
void user_mem_exit(struct user *u, bool forked);
int user_attach(struct towi_provider *p, int fd, struct towpin_attach *result);
int user_register(struct towi_provider *p, uint64_t addr, uint64_t length,
		  uint32_t flags, uint32_t *handle);
int user_detach(struct towi_provider *p, uint32_t handle, uint32_t flags);
struct user_mem *user_mem_get(struct user *u, uint32_t handle);
void user_mem_put(struct user *u, struct user_mem *mem);
bool user_mem_same(const struct user_mem *a, const struct user_mem *b);
int user_mem_begin(const struct user_mem *mem, uint32_t access);
void user_mem_end(const struct user_mem *mem, uint32_t access);

/* user_event.c */
int user_eventfd_add(struct towi_provider *p, int fd);
int user_eventfd_del(struct towi_provider *p, uint32_t index);
struct user_event *user_event_get(struct user *u, uint32_t index);
void user_event_put(struct user_event *event);
void user_event_signal(const struct user_event *event);
void user_events_exit(struct user *u, bool forked);
int user_fd(struct towi_provider *p);
void user_count(struct user *u);

/* user_check.c */
int user_check_fields(const struct user *u, const struct towpin_op *op);
int user_check_mems(struct user *u, struct user_slot *s);
void user_slot_release(struct user *u, struct user_slot *s);

/* user_run.c */
void user_run(struct user *u, const struct user_slot *s,
	      struct user_outcome *out);

/* user_queue.c */
int user_submit(struct towi_provider *p, const struct towpin_op *ops,
		uint32_t nr, uint32_t *accepted);
int user_wait(struct towi_provider *p, const uint32_t *slots, uint32_t nr,
	      uint32_t min, uint64_t deadline, uint32_t *done);
void *user_worker(void *arg);
void user_queue_stop(struct user *u);

#endif /* TOWI_USER_H */

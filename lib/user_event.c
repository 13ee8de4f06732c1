// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Eventfds of the user provider: those that operations signal, and the one that
 * counts completions for fd().
 *
 * Invariants: signalling never blocks, whatever the program did to the counter;
 * each completion is added to the counting eventfd once, those before somebody
 * asked for it included, and costs no system call until then.
 */
#include "user.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static bool is_eventfd(int fd)
{
	static const char name[] = "anon_inode:[eventfd]";
	char path[32], target[sizeof(name)];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target));
	return n == sizeof(name) - 1 && !memcmp(target, name, (size_t)n);
}

int user_eventfd_add(struct towi_provider *p, int fd)
{
	struct user *u = to_user(p);
	struct user_event *event;
	int index;

	if (fcntl(fd, F_GETFD) < 0)
		return -EBADF;
	if (!is_eventfd(fd))
		return -EINVAL;
	event = calloc(1, sizeof(*event));
	if (!event)
		return -ENOMEM;
	event->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (event->fd < 0) {
		int err = -errno;

		free(event);
		return err;
	}
	atomic_init(&event->refs, 1);

	pthread_mutex_lock(&u->event_lock);
	for (index = 0; index < TOWPIN_MAX_EVENTFDS; index++)
		if (!u->events[index])
			break;
	if (index < TOWPIN_MAX_EVENTFDS)
		u->events[index] = event;
	pthread_mutex_unlock(&u->event_lock);

	if (index == TOWPIN_MAX_EVENTFDS) {
		user_event_put(event);
		return -ENOSPC;
	}
	return index;
}

int user_eventfd_del(struct towi_provider *p, uint32_t index)
{
	struct user *u = to_user(p);
	struct user_event *event;

	if (index >= TOWPIN_MAX_EVENTFDS)
		return -ENOENT;
	pthread_mutex_lock(&u->event_lock);
	event = u->events[index];
	u->events[index] = NULL;
	pthread_mutex_unlock(&u->event_lock);
	if (!event)
		return -ENOENT;
	user_event_put(event);
	return 0;
}

struct user_event *user_event_get(struct user *u, uint32_t index)
{
	struct user_event *event;

	pthread_mutex_lock(&u->event_lock);
	event = u->events[index];
	if (event)
		atomic_fetch_add(&event->refs, 1);
	pthread_mutex_unlock(&u->event_lock);
	return event;
}

void user_event_put(struct user_event *event)
{
	if (!event || atomic_fetch_sub(&event->refs, 1) != 1)
		return;
	close(event->fd);
	free(event);
}

/* In a forked child, references of the parent's operations are not given back. */
void user_events_exit(struct user *u, bool forked)
{
	unsigned int i;

	for (i = 0; i < TOWPIN_MAX_EVENTFDS; i++) {
		if (u->events[i] && forked)
			atomic_store(&u->events[i]->refs, 1);
		user_event_put(u->events[i]);
	}
}

/*
 * A counter at its maximum would block the write, and so the worker, for ever.
 * It is readable then in any case: nobody misses this one. (A process that shares
 * the eventfd and fills it between the two calls can still block the write.)
 */
static void eventfd_bump(int fd, uint64_t n)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };
	ssize_t ret;

	do {
		ret = poll(&pfd, 1, 0);
		if (ret == 1)
			ret = write(fd, &n, sizeof(n));
	} while (ret < 0 && errno == EINTR);
}

void user_event_signal(const struct user_event *event)
{
	eventfd_bump(event->fd, 1);
}

/* Moves what was not counted yet to the eventfd, if there is one. */
static void count_flush(struct user *u)
{
	int fd = atomic_load(&u->count_fd);
	uint64_t n;

	if (fd < 0)
		return;
	n = atomic_exchange(&u->uncounted, 0);
	if (n)
		eventfd_bump(fd, n);
}

void user_count(struct user *u)
{
	atomic_fetch_add(&u->uncounted, 1);
	count_flush(u);
}

int user_fd(struct towi_provider *p)
{
	struct user *u = to_user(p);
	int expected = -1;
	int fd;

	fd = atomic_load(&u->count_fd);
	if (fd >= 0)
		return fd;
	fd = eventfd(0, EFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!atomic_compare_exchange_strong(&u->count_fd, &expected, fd)) {
		close(fd);
		return expected;
	}
	count_flush(u);
	return fd;
}

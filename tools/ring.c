// SPDX-License-Identifier: GPL-2.0-only
/*
 * Making, importing and ending the ring; its words and bells.
 *
 * Invariants: a ring is whole or not there: a function that fails has undone
 * what it did; the receiver has no way to write to the payload; an eventfd that
 * the peer holds too can neither block this process nor lose a wake-up.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ring.h"
#include "tool.h"
#include "towpin.h"

_Static_assert(sizeof(struct ring_word) == 128, "two cache lines");
_Static_assert(offsetof(struct ring_word, credit) == 64, "a line per side");

bool ring_geometry_ok(uint64_t slots, uint64_t slot_size)
{
	return slots >= 1 && slots <= RING_SLOTS_MAX &&
	       slot_size >= RING_SLOT_SIZE_MIN &&
	       slot_size <= RING_SLOT_SIZE_MAX &&
	       slot_size % RING_SLOT_SIZE_MIN == 0 &&
	       slots * slot_size <= RING_TOTAL_MAX;
}

static void ring_init(struct ring *ring, struct tow_ctx *ctx)
{
	struct tow_info info = { .size = sizeof(info) };

	memset(ring, 0, sizeof(*ring));
	ring->ctx = ctx;
	ring->data_fd = -1;
	ring->credit_fd = -1;
	ring->payload_fd = -1;
	ring->data_index = -1;
	if (!tow_info(ctx, &info))
		ring->provider = info.provider;
}

static void buffers_destroy(struct ring *ring)
{
	if (ring->control)
		tow_buf_destroy(ring->control);
	if (ring->payload)
		tow_buf_destroy(ring->payload);
	if (ring->staging)
		tow_buf_destroy(ring->staging);
	ring->control = NULL;
	ring->payload = NULL;
	ring->staging = NULL;
}

/* No operation of the ring may be in flight. */
void ring_destroy(struct ring *ring)
{
	buffers_destroy(ring);
	if (ring->data_index >= 0)
		tow_eventfd_del(ring->ctx, ring->data_index);
	if (ring->data_fd >= 0)
		close(ring->data_fd);
	if (ring->credit_fd >= 0)
		close(ring->credit_fd);
	if (ring->payload_fd >= 0)
		close(ring->payload_fd);
	ring_init(ring, ring->ctx);
}

static int buffers_create(struct ring *ring)
{
	uint64_t length = ring->slots * ring->slot_size;
	int err;

	err = tow_buf_create(ring->ctx, length, 0, TOW_NODE_ANY,
			     &ring->staging);
	if (err >= 0)
		err = tow_buf_create(ring->ctx, length, 0, TOW_NODE_ANY,
				     &ring->payload);
	if (err >= 0)
		err = tow_buf_create(ring->ctx,
				     ring->slots * sizeof(struct ring_word), 0,
				     TOW_NODE_ANY, &ring->control);
	if (err < 0)
		buffers_destroy(ring);
	return err;
}

static int map_buffer(struct tow_buf *buf, void *addr, const char *what)
{
	int err = tow_buf_map(buf, addr);

	if (err < 0)
		return fail(err, "cannot map the %s buffer: %s", what,
			    strerror(-err));
	return 0;
}

static int events_create(struct ring *ring)
{
	int err;

	ring->data_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ring->credit_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ring->data_fd < 0 || ring->credit_fd < 0)
		return fail(-errno, "cannot create an eventfd: %s",
			    strerror(errno));
	err = tow_eventfd_add(ring->ctx, ring->data_fd);
	if (err < 0)
		return fail(err, "cannot register an eventfd: %s",
			    strerror(-err));
	ring->data_index = err;
	return 0;
}

/*
 * With @may_shrink (the caller did not ask for a size) a ring that does not fit
 * the memory limits is tried with fewer slots, down to two.
 */
int ring_create(struct ring *ring, struct tow_ctx *ctx, unsigned int slots,
		uint64_t slot_size, bool may_shrink)
{
	int err;

	ring_init(ring, ctx);
	ring->slots = slots;
	ring->slot_size = slot_size;
	err = buffers_create(ring);
	while (err == -ENOMEM && may_shrink && ring->slots > 2) {
		ring->slots /= 2;
		err = buffers_create(ring);
	}
	if (err == -ENOMEM)
		return fail_memory(ctx, "two rings",
				   2 * ring->slots * slot_size);
	if (err < 0)
		return fail(err, "cannot create the buffers: %s",
			    strerror(-err));

	err = map_buffer(ring->staging, &ring->input, "staging");
	if (!err)
		err = map_buffer(ring->control, &ring->words, "control");
	if (!err)
		err = events_create(ring);
	if (err)
		goto undo;
	ring->payload_fd = tow_buf_derive(ring->payload, TOW_RIGHT_READ);
	if (ring->payload_fd < 0) {
		err = fail(ring->payload_fd,
			   "cannot derive a read-only descriptor: %s",
			   strerror(-ring->payload_fd));
		goto undo;
	}
	return 0;

undo:
	ring_destroy(ring);
	return err;
}

/*
 * We will read and write this descriptor, so it must be nothing but an eventfd:
 * writing to a pipe could block, and to other files could do harm.
 */
static bool is_eventfd(int fd)
{
	char path[64], name[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	if (n < 0)
		return false;
	name[n] = '\0';
	return !strcmp(name, "anon_inode:[eventfd]");
}

static int import_buffer(struct ring *ring, int fd, unsigned int rights,
			 uint64_t length, const char *what,
			 struct tow_buf **buf)
{
	int err = tow_buf_import(ring->ctx, fd, buf);

	if (err < 0)
		return fail(err,
			    "cannot import the %s buffer of the sender: %s",
			    what, strerror(-err));
	if ((tow_buf_rights(*buf) & rights) != rights)
		return fail(-EPROTO,
			    "the sender broke the protocol: the %s buffer lacks a right",
			    what);
	if (tow_buf_length(*buf) < length)
		return fail(-EPROTO,
			    "the sender broke the protocol: the %s buffer is too small",
			    what);
	return 0;
}

/* Takes over @fds, those of HELLO, also when it fails. */
int ring_import(struct ring *ring, struct tow_ctx *ctx,
		const struct wire_hello *hello, int *fds)
{
	int err;

	ring_init(ring, ctx);
	ring->data_fd = fds[WIRE_FD_DATA];
	ring->credit_fd = fds[WIRE_FD_CREDIT];
	if (!ring_geometry_ok(hello->slots, hello->slot_size)) {
		err = fail(-EPROTO,
			   "the sender broke the protocol: %u slots of %llu bytes",
			   hello->slots, (unsigned long long)hello->slot_size);
		goto out;
	}
	ring->slots = hello->slots;
	ring->slot_size = hello->slot_size;
	if (hello->provider != ring->provider) {
		err = fail(-EXDEV,
			   "the sender uses provider %s, this side %s; set TOW_PROVIDER to the same on both",
			   provider_name(hello->provider),
			   provider_name(ring->provider));
		goto out;
	}
	if (!is_eventfd(ring->data_fd) || !is_eventfd(ring->credit_fd)) {
		err = fail(-EPROTO,
			   "the sender broke the protocol: not an eventfd");
		goto out;
	}
	err = import_buffer(ring, fds[WIRE_FD_PAYLOAD], TOW_RIGHT_READ,
			    ring->slots * ring->slot_size, "payload",
			    &ring->payload);
	if (!err)
		err = import_buffer(ring, fds[WIRE_FD_CONTROL],
				    TOW_RIGHT_READ | TOW_RIGHT_WRITE,
				    ring->slots * sizeof(struct ring_word),
				    "control", &ring->control);
	if (!err)
		err = map_buffer(ring->payload, &ring->output, "payload");
	if (!err)
		err = map_buffer(ring->control, &ring->words, "control");
out:
	close(fds[WIRE_FD_PAYLOAD]);
	close(fds[WIRE_FD_CONTROL]);
	if (err)
		ring_destroy(ring);
	return err;
}

/* @word awaits chunk + 1; until then it has that of the lap before, or 0. */
enum ring_state ring_word_state(uint64_t word, uint64_t chunk,
				unsigned int slots)
{
	uint64_t before = chunk < slots ? 0 : chunk + 1 - slots;

	if (word == chunk + 1)
		return RING_SET;
	return word == before ? RING_WAIT : RING_BROKEN;
}

/*
 * The peer may have made the eventfd blocking and its counter full: then it is
 * readable for the peer anyway, and needs no signal.
 */
int ring_bell(int event_fd)
{
	struct pollfd p = { .fd = event_fd, .events = POLLOUT };
	uint64_t one = 1;

	if (poll(&p, 1, 0) == 1 && p.revents & POLLOUT &&
	    write(event_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		return fail(-errno, "cannot signal the peer: %s",
			    strerror(errno));
	return 0;
}

/* Before looking at the words, so that no later signal is lost. */
void ring_bell_clear(int event_fd)
{
	uint64_t count;
	struct iovec iov = { .iov_base = &count, .iov_len = sizeof(count) };

	/* RWF_NOWAIT: the peer may have made it blocking, and empty */
	if (preadv2(event_fd, &iov, 1, -1, RWF_NOWAIT) < 0)
		return;		/* there was nothing to clear */
}

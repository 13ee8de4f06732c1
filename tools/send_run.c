// SPDX-License-Identifier: GPL-2.0-only
/*
 * The work of tow send: read a stream and hand it to a tow recv.
 *
 * Invariants: nothing is read from the input before a receiver said READY; a
 * slot is filled only when its copy is done and its credit has come; before the
 * command sleeps it has harvested every operation, so that a failed one is
 * never slept over; whenever it sleeps it watches the socket.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rendezvous.h"
#include "send.h"
#include "tool.h"

/* ---- rendezvous ---- */

static int say_hello(struct send *s)
{
	union wire_msg msg = { 0 };
	int fds[WIRE_FDS] = {
		[WIRE_FD_PAYLOAD] = s->st.ring.payload_fd,
		[WIRE_FD_CONTROL] = tow_buf_fd(s->st.ring.control),
		[WIRE_FD_DATA] = s->st.ring.data_fd,
		[WIRE_FD_CREDIT] = s->st.ring.credit_fd,
	};

	msg.hello.provider = s->st.ring.provider;
	msg.hello.slots = s->st.ring.slots;
	msg.hello.slot_size = s->st.ring.slot_size;
	return wire_send(&s->peer, WIRE_HELLO, &msg, fds);
}

/* 0: READY came; -EAGAIN: the receiver left before, another may come. */
static int await_ready(struct send *s)
{
	uint64_t deadline = now_ns() + RDV_HELLO;
	union wire_msg msg;
	int type = -EAGAIN, err;

	while (type == -EAGAIN) {
		err = rdv_wait(&s->peer, deadline);
		if (err == -ETIMEDOUT)
			return fail(-EBUSY,
				    "the receiver (pid %d) does not answer; is it stopped?",
				    (int)s->peer.pid);
		if (err)
			return err;
		type = wire_recv(&s->peer, &msg, NULL);
	}
	if (type < 0)
		return type;
	if (!type)
		return -EAGAIN;
	return type == WIRE_READY ? 0 : peer_unexpected(&s->peer, &msg);
}

static int shake_hands(struct send *s, int dir_fd, uint64_t deadline,
		       const char **missing)
{
	int err;

	/* made afresh for each: a receiver that left may have kept the last */
	err = ring_create(&s->st.ring, s->ctx, s->slots, s->slot_size,
			  !s->sized);
	if (err)
		return err;
	err = rdv_connect(dir_fd, s->name, &s->peer, s->any_user, deadline,
			  missing);
	if (err)
		goto destroy;
	err = say_hello(s);
	/* if it has left, it may have said why */
	if (!err || err == -EPIPE || err == -ECONNRESET)
		err = await_ready(s);
	else
		err = fail(err, "cannot send to the receiver: %s",
			   strerror(-err));
	if (!err)
		return 0;
	s->left = true;
	close(s->peer.sock);
destroy:
	ring_destroy(&s->st.ring);
	return err;
}

static int find_receiver(struct send *s)
{
	uint64_t deadline = now_ns() + s->timeout;
	const char *missing = "no receiver";
	int dir_fd, err;

	dir_fd = rdv_open_dir(s->any_user);
	if (dir_fd < 0)
		return dir_fd;
	do {
		err = shake_hands(s, dir_fd, deadline, &missing);
		if (err == -EAGAIN)
			err = rdv_pause(deadline) ?: -EAGAIN;
	} while (err == -EAGAIN);
	close(dir_fd);
	if (s->left)
		missing = "the last receiver left before the transfer began, and no other came";
	if (err == -ETIMEDOUT)
		return fail(err,
			    "%s for name '%s' in %.3g s; start 'tow recv %s', or wait longer with --timeout",
			    missing, s->name, s->timeout / 1e9, s->name);
	return err;
}

/* ---- the transfer ---- */

static int take_credits(struct send *s)
{
	struct ring *ring = &s->st.ring;

	while (s->credited < s->st.submitted) {
		unsigned int i = s->credited % ring->slots;
		uint64_t word = load_acquire(&ring->words[i].credit);

		switch (ring_word_state(word, s->credited, ring->slots)) {
		case RING_WAIT:
			return 0;
		case RING_BROKEN:
			return fail(-EPROTO,
				    "the receiver broke the protocol: credit %llu for chunk %llu",
				    (unsigned long long)word,
				    (unsigned long long)s->credited);
		case RING_SET:
			s->credited++;
		}
	}
	return 0;
}

/* Sleeps until a credit or, with @input, data may have come. */
static int sleep_for(struct send *s, bool input)
{
	struct pollfd p[4] = {
		{ .fd = s->peer.sock, .events = POLLIN },
		{ .fd = stop_fd(), .events = POLLIN },
		{ .fd = s->st.ring.credit_fd, .events = POLLIN },
		{ .fd = input ? s->input : -1, .events = POLLIN },
	};
	int err;

	err = stream_harvest_until(&s->st, s->st.submitted);
	if (err)
		return err;
	if (poll(p, 4, progress_timeout()) < 0 && errno != EINTR)
		return fail(-errno, "poll: %s", strerror(errno));
	if (stop_wanted())
		return stop_fail();
	if (p[0].revents) {
		err = peer_check(&s->peer);
		if (err)
			return err;
	}
	ring_bell_clear(s->st.ring.credit_fd);
	progress_update(s->st.bytes);
	return 0;
}

static bool input_ready(struct send *s)
{
	struct pollfd p = { .fd = s->input, .events = POLLIN };

	return !s->slow_input || poll(&p, 1, 0) > 0;
}

static int read_some(struct send *s)
{
	struct ring *ring = &s->st.ring;
	char *slot = ring->input +
		     s->st.submitted % ring->slots * ring->slot_size;
	ssize_t n = read(s->input, slot + s->fill, ring->slot_size - s->fill);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n < 0) {
		s->reason = WIRE_READ;
		return fail(-errno, "cannot read %s: %s",
			    s->path ? s->path : "standard input",
			    strerror(errno));
	}
	if (!n)
		s->eof = true;
	s->fill += n;
	return 0;
}

static int submit_chunk(struct send *s)
{
	struct ring *ring = &s->st.ring;
	uint64_t chunk = s->st.submitted;
	unsigned int i = chunk % ring->slots;
	uint32_t control = tow_buf_handle(ring->control);
	struct tow_op op;

	/* the engine's store of ready, which is release, comes after this */
	store_release(&ring->words[i].length, s->fill);
	tow_prep_copy_crc(&op, tow_buf_handle(ring->payload),
			  i * ring->slot_size, tow_buf_handle(ring->staging),
			  i * ring->slot_size, s->fill, 0);
	tow_op_store(&op, control, i * sizeof(struct ring_word) +
		     offsetof(struct ring_word, ready), chunk + 1,
		     sizeof(uint64_t));
	tow_op_signal(&op, ring->data_index);
	s->fill = 0;
	return stream_submit(&s->st, &op);
}

/* Fill the slot of the next chunk as far as the input has data, and send it. */
static int next_chunk(struct send *s)
{
	struct ring *ring = &s->st.ring;
	int err;

	if (s->st.submitted >= ring->slots) {
		err = stream_harvest_until(&s->st,
					   s->st.submitted + 1 - ring->slots);
		if (err)
			return err;
	}
	while (!s->eof && s->fill < ring->slot_size) {
		if (stop_wanted())
			return stop_fail();
		err = 0;
		if (input_ready(s))
			err = read_some(s);
		else if (!s->fill)
			err = sleep_for(s, true);
		else	/* do not keep what there is waiting */
			return submit_chunk(s);
		if (err)
			return err;
	}
	return s->fill ? submit_chunk(s) : 0;
}

static int send_stream(struct send *s)
{
	int err = 0;

	while (!err && !s->eof) {
		progress_update(s->st.bytes);
		err = take_credits(s);
		if (!err)
			err = stream_harvest(&s->st);
		if (err)
			break;
		if (s->st.submitted < s->credited + s->st.ring.slots)
			err = next_chunk(s);
		else
			err = sleep_for(s, false);
	}
	if (!err)
		err = stream_harvest_until(&s->st, s->st.submitted);
	return err;
}

static int await_verdict(struct send *s, union wire_msg *msg)
{
	int type = -EAGAIN, err;

	while (type == -EAGAIN) {
		struct pollfd p[2] = {
			{ .fd = s->peer.sock, .events = POLLIN },
			{ .fd = stop_fd(), .events = POLLIN },
		};

		if (poll(p, 2, progress_timeout()) < 0 && errno != EINTR)
			return fail(-errno, "poll: %s", strerror(errno));
		if (stop_wanted())
			return stop_fail();
		progress_update(s->st.bytes);
		type = wire_recv(&s->peer, msg, NULL);
	}
	err = type < 0 ? type : 0;
	if (!type)
		err = peer_gone(&s->peer);
	else if (type > 0 && type != WIRE_VERDICT)
		err = peer_unexpected(&s->peer, msg);
	return err;
}

static int finish(struct send *s)
{
	union wire_msg msg = { 0 };
	int err;

	msg.end.length = s->st.bytes;
	msg.end.chunks = s->st.submitted;
	msg.end.crc = s->st.crc;
	err = wire_send(&s->peer, WIRE_END, &msg, NULL);
	/* it may have said why before it left */
	if (err == -EPIPE || err == -ECONNRESET)
		return peer_check(&s->peer) ?: peer_gone(&s->peer);
	if (err)
		return fail(err, "cannot send to the receiver: %s",
			    strerror(-err));
	err = await_verdict(s, &msg);
	if (err)
		return err;
	if (msg.verdict.reason != WIRE_OK ||
	    msg.verdict.length != s->st.bytes || msg.verdict.crc != s->st.crc)
		return fail(-EBADMSG,
			    "the receiver did not get what was sent: %llu bytes with CRC-32C %08x, sent %llu with %08x",
			    (unsigned long long)msg.verdict.length,
			    msg.verdict.crc, (unsigned long long)s->st.bytes,
			    s->st.crc);
	return 0;
}

static int report(struct send *s, uint64_t ns)
{
	struct report r = {
		.command = "send", .verb = "sent", .name = s->name,
		.bytes = s->st.bytes, .ns = ns, .crc = s->st.crc,
		.provider = s->st.ring.provider, .chunks = s->st.submitted,
		.operations = s->st.submitted, .slots = s->st.ring.slots,
		.slot_size = s->st.ring.slot_size, .peer_pid = s->peer.pid,
		.peer_uid = s->peer.uid,
	};

	return report_print(&r, s->json, stdout);
}

/* The context and the input are open. */
int send_run(struct send *s)
{
	uint64_t started;
	int err;

	err = find_receiver(s);
	if (err)
		return err;
	progress_start(s->quiet);
	started = now_ns();
	err = stream_start(&s->st);
	if (!err)
		err = send_stream(s);
	if (err)
		wire_abort(&s->peer, err, s->reason);
	else
		err = finish(s);
	if (!err)
		err = report(s, now_ns() - started);
	stream_end(&s->st);
	close(s->peer.sock);
	return err;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The work of tow recv: take the stream of a tow send and write it out.
 *
 * Invariants: whatever the sender put into the control buffer is read once and
 * checked before use; a chunk is written out only after an engine of our own
 * has read it for its CRC; a credit is given only when the chunk is written;
 * the output gets its name only when length and CRC agree with the sender's;
 * whenever the command sleeps it watches the socket.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "recv.h"
#include "tool.h"

/* ---- rendezvous ---- */

static int await_hello(struct recv *r, union wire_msg *msg, int *fds)
{
	uint64_t deadline = now_ns() + RDV_HELLO;
	int type = -EAGAIN, err;

	while (type == -EAGAIN) {
		err = rdv_wait(&r->peer, deadline);
		if (err == -ETIMEDOUT)
			return fail(err,
				    "the sender (pid %d) does not speak; is it stopped?",
				    (int)r->peer.pid);
		if (err)
			return err;
		type = wire_recv(&r->peer, msg, fds);
	}
	if (type < 0)
		return type;
	if (!type)
		return peer_gone(&r->peer);
	return type == WIRE_HELLO ? 0 : peer_unexpected(&r->peer, msg);
}

static int open_entries(struct recv *r, unsigned int slots)
{
	/* only now is it known how many operations will be in flight */
	if (slots < 1 || slots > RING_SLOTS_MAX)
		return fail(-EPROTO, "the sender broke the protocol: %u slots",
			    slots);
	return context_open(&r->ctx, slots);
}

static int shake_hands(struct recv *r)
{
	union wire_msg msg, ready = { 0 };
	int fds[WIRE_FDS], i, err;

	err = await_hello(r, &msg, fds);
	if (err)
		return err;
	err = open_entries(r, msg.hello.slots);
	if (err) {
		for (i = 0; i < WIRE_FDS; i++)
			close(fds[i]);
		return err;
	}
	err = ring_import(&r->st.ring, r->ctx, &msg.hello, fds);
	if (err == -EXDEV)
		r->reason = WIRE_PROVIDER;
	if (err)
		return err;
	err = stream_start(&r->st);
	if (err)
		return err;
	err = wire_send(&r->peer, WIRE_READY, &ready, NULL);
	return err ? peer_gone(&r->peer) : 0;
}

/* ---- the transfer ---- */

/* Submit the CRC of each chunk that has come. */
static int take_chunks(struct recv *r)
{
	struct ring *ring = &r->st.ring;
	struct tow_op op;
	uint64_t chunk, ready;
	uint32_t length;
	unsigned int i;
	int err;

	while (r->st.submitted < r->written + ring->slots) {
		chunk = r->st.submitted;
		i = chunk % ring->slots;
		ready = load_acquire(&ring->words[i].ready);
		switch (ring_word_state(ready, chunk, ring->slots)) {
		case RING_WAIT:
			return 0;
		case RING_BROKEN:
			return fail(-EPROTO,
				    "the sender broke the protocol: ready %llu for chunk %llu",
				    (unsigned long long)ready,
				    (unsigned long long)chunk);
		case RING_SET:
			break;
		}
		length = load_once(&ring->words[i].length);
		if (!length || length > ring->slot_size)
			return fail(-EPROTO,
				    "the sender broke the protocol: %u bytes in a slot of %llu",
				    length,
				    (unsigned long long)ring->slot_size);
		tow_prep_crc32c(&op, tow_buf_handle(ring->payload),
				i * ring->slot_size, length, 0);
		err = stream_submit(&r->st, &op);
		if (err)
			return err;
	}
	return 0;
}

/* Write out the oldest chunk that has come, and give its slot back. */
static int write_chunk(struct recv *r)
{
	struct ring *ring = &r->st.ring;
	unsigned int i = r->written % ring->slots;
	int err;

	err = stream_harvest_until(&r->st, r->written + 1);
	if (err)
		return err;
	err = output_write(&r->out, &r->peer,
			   ring->output + i * ring->slot_size,
			   r->st.slot[i].length);
	if (err) {
		r->reason = WIRE_WRITE;
		return err;
	}
	r->written++;
	store_release(&ring->words[i].credit, r->written);
	return ring_bell(ring->credit_fd);
}

static int read_socket(struct recv *r)
{
	union wire_msg msg;
	int type = wire_recv(&r->peer, &msg, NULL);

	if (type == -EAGAIN)
		return 0;
	if (type < 0)
		return type;
	if (!type)
		return peer_gone(&r->peer);
	if (type != WIRE_END || r->ended)
		return peer_unexpected(&r->peer, &msg);
	r->end = msg.end;
	r->ended = true;
	return 0;
}

/* Sleeps until data or a message may have come. */
static int sleep_for(struct recv *r)
{
	struct pollfd p[3] = {
		{ .fd = r->peer.sock, .events = POLLIN },
		{ .fd = stop_fd(), .events = POLLIN },
		{ .fd = r->st.ring.data_fd, .events = POLLIN },
	};

	if (poll(p, 3, progress_timeout()) < 0 && errno != EINTR)
		return fail(-errno, "poll: %s", strerror(errno));
	if (stop_wanted())
		return stop_fail();
	ring_bell_clear(r->st.ring.data_fd);
	return p[0].revents ? read_socket(r) : 0;
}

static int receive_stream(struct recv *r)
{
	bool ended;
	int err = 0;

	while (!err) {
		if (stop_wanted())
			return stop_fail();
		progress_update(r->st.bytes);
		/* in this order: every chunk was there before END came */
		ended = r->ended;
		err = take_chunks(r);
		if (err)
			break;
		if (r->written < r->st.submitted)
			err = write_chunk(r);
		else if (!ended)
			err = sleep_for(r);
		else
			return 0;
	}
	return err;
}

static int finish(struct recv *r)
{
	union wire_msg msg = { 0 };
	int err;

	msg.verdict.length = r->st.bytes;
	msg.verdict.crc = r->st.crc;
	if (r->end.length != r->st.bytes || r->end.crc != r->st.crc ||
	    r->end.chunks != r->written) {
		msg.verdict.reason = WIRE_MISMATCH;
		wire_send(&r->peer, WIRE_VERDICT, &msg, NULL);
		return fail(-EBADMSG,
			    "the stream is damaged: %llu bytes with CRC-32C %08x, the sender says %llu with %08x; send it again",
			    (unsigned long long)r->st.bytes, r->st.crc,
			    (unsigned long long)r->end.length, r->end.crc);
	}
	err = output_finish(&r->out);
	if (err) {
		wire_abort(&r->peer, err, WIRE_WRITE);
		return err;
	}
	/* the stream is whole, even if the sender no longer wants to know */
	msg.verdict.reason = WIRE_OK;
	wire_send(&r->peer, WIRE_VERDICT, &msg, NULL);
	return 0;
}

static int report(struct recv *r, uint64_t ns)
{
	struct report rep = {
		.command = "recv", .verb = "received", .name = r->name,
		.bytes = r->st.bytes, .ns = ns, .crc = r->st.crc,
		.provider = r->st.ring.provider, .chunks = r->written,
		.operations = r->st.submitted, .slots = r->st.ring.slots,
		.slot_size = r->st.ring.slot_size, .peer_pid = r->peer.pid,
		.peer_uid = r->peer.uid,
	};

	/* stdout may be the stream itself */
	return report_print(&rep, r->json, r->path ? stdout : stderr);
}

static int transfer(struct recv *r)
{
	uint64_t started;
	int err;

	err = shake_hands(r);
	started = now_ns();
	progress_start(r->quiet);
	if (!err)
		err = receive_stream(r);
	if (err)
		wire_abort(&r->peer, err, r->reason);
	else
		err = finish(r);
	if (!err)
		err = report(r, now_ns() - started);
	if (r->st.slot)
		stream_end(&r->st);
	else if (r->ctx)
		ring_destroy(&r->st.ring);
	return err;
}

/* The output is open. The context stays open for the caller to close. */
int recv_run(struct recv *r)
{
	uint64_t deadline = now_ns() + r->timeout;
	int err;

	err = rdv_claim(&r->claim, r->name, r->any_user);
	if (err)
		return err;
	err = rdv_accept(&r->claim, &r->peer, r->any_user, deadline);
	rdv_unlisten(&r->claim);
	if (!err) {
		err = transfer(r);
		close(r->peer.sock);
	}
	rdv_release(&r->claim);
	return err;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages between tow send and tow recv.
 *
 * Invariants: wire_recv() gives out a message only if its magic, version, type,
 * size and number of descriptors are right, whatever the peer sent; descriptors
 * that are not given out are closed; nothing here blocks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tool.h"
#include "wire.h"

#define SCM_MAX		253	/* the kernel's limit: nothing is cut off */

static const struct {
	size_t size;
	unsigned int fds;
} types[] = {
	[WIRE_HELLO] = { sizeof(struct wire_hello), WIRE_FDS },
	[WIRE_READY] = { sizeof(struct wire_ready), 0 },
	[WIRE_END] = { sizeof(struct wire_end), 0 },
	[WIRE_VERDICT] = { sizeof(struct wire_verdict), 0 },
	[WIRE_ABORT] = { sizeof(struct wire_abort), 0 },
};

static void close_all(const int *fds, unsigned int n)
{
	while (n--)
		close(fds[n]);
}

/* Silent: the callers know better what it means that the peer is gone. */
int wire_send(struct peer *peer, enum wire_type type, union wire_msg *msg,
	      const int *fds)
{
	union {
		char buf[CMSG_SPACE(WIRE_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = msg, .iov_len = types[type].size };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cm;

	msg->head.magic = WIRE_MAGIC;
	msg->head.version = WIRE_VERSION;
	msg->head.type = type;
	if (types[type].fds) {
		mh.msg_control = control.buf;
		mh.msg_controllen = sizeof(control.buf);
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(WIRE_FDS * sizeof(int));
		memcpy(CMSG_DATA(cm), fds, WIRE_FDS * sizeof(int));
	}
	/* a few small packets in all: they fit the socket buffer */
	if (sendmsg(peer->sock, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return -errno;
	return 0;
}

static unsigned int collect_fds(struct msghdr *mh, int *fds)
{
	struct cmsghdr *cm;
	unsigned int n = 0, k;

	for (cm = CMSG_FIRSTHDR(mh); cm; cm = CMSG_NXTHDR(mh, cm)) {
		if (cm->cmsg_level != SOL_SOCKET ||
		    cm->cmsg_type != SCM_RIGHTS)
			continue;
		k = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		if (k > SCM_MAX - n)
			k = SCM_MAX - n;
		memcpy(fds + n, CMSG_DATA(cm), k * sizeof(int));
		n += k;
	}
	return n;
}

static int check(struct peer *peer, const union wire_msg *msg, size_t len,
		 unsigned int nfds, int flags)
{
	unsigned int type;

	if (len < sizeof(msg->head) || msg->head.magic != WIRE_MAGIC)
		return fail(-EPROTO,
			    "the %s does not speak the tow protocol; is it another program?",
			    peer->role);
	if (msg->head.version != WIRE_VERSION)
		return fail(-EPROTO,
			    "the %s speaks protocol version %u, this one %u; use the same tow on both sides",
			    peer->role, msg->head.version, WIRE_VERSION);
	type = msg->head.type;
	if (!type || type >= ARRAY_SIZE(types))
		return fail(-EPROTO,
			    "the %s broke the protocol: message of unknown type %u",
			    peer->role, type);
	if (flags & MSG_TRUNC || len != types[type].size)
		return fail(-EPROTO,
			    "the %s broke the protocol: message %u has the wrong size",
			    peer->role, type);
	if (flags & MSG_CTRUNC)
		return fail(-EMFILE,
			    "cannot take the descriptors of the %s: too many open files; raise 'ulimit -n'",
			    peer->role);
	if (nfds != types[type].fds)
		return fail(-EPROTO,
			    "the %s broke the protocol: message %u with %u descriptors instead of %u",
			    peer->role, type, nfds, types[type].fds);
	return 0;
}

/*
 * Returns the type of the message, 0 when the peer has closed the connection,
 * -EAGAIN when there is none yet; other errors have been reported.
 * @fds of WIRE_FDS is filled for HELLO; NULL: HELLO is refused.
 */
int wire_recv(struct peer *peer, union wire_msg *msg, int *fds)
{
	union {
		char buf[CMSG_SPACE(SCM_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = msg, .iov_len = sizeof(*msg) };
	struct msghdr mh = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	int got[SCM_MAX], err;
	unsigned int nfds;
	ssize_t n;

	memset(msg, 0, sizeof(*msg));
	n = recvmsg(peer->sock, &mh, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	/* it left before it had read all of ours; its own still come */
	if (n < 0 && errno == ECONNRESET)
		n = recvmsg(peer->sock, &mh, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (n < 0 && (errno == ECONNRESET || errno == EPIPE))
		return 0;
	if (n < 0)
		return fail(-errno, "cannot receive from the %s: %s",
			    peer->role, strerror(errno));
	nfds = collect_fds(&mh, got);
	/* no message is empty, so this is the end (or it sent an empty one) */
	if (!n) {
		close_all(got, nfds);
		return 0;
	}
	err = check(peer, msg, n, nfds, mh.msg_flags);
	if (!err && nfds && fds) {
		memcpy(fds, got, sizeof(*fds) * WIRE_FDS);
		return msg->head.type;
	}
	close_all(got, nfds);
	if (!err && nfds)
		err = peer_unexpected(peer, msg);
	return err ? err : msg->head.type;
}

/* Tell the peer why we leave. A courtesy: it would notice anyway. */
void wire_abort(struct peer *peer, int err, enum wire_reason reason)
{
	union wire_msg msg = { 0 };

	if (err == -EINTR)
		reason = WIRE_STOPPED;
	else if (err == -EPROTO)
		reason = WIRE_PROTOCOL;
	msg.abort.reason = reason;
	wire_send(peer, WIRE_ABORT, &msg, NULL);
}

/* The connection is closed and the transfer not finished. */
int peer_gone(struct peer *peer)
{
	return fail(-EPIPE,
		    "peer went away: the %s (pid %d) closed the connection before the end; start both sides again",
		    peer->role, (int)peer->pid);
}

static const char *reason_text(uint32_t reason)
{
	switch (reason) {
	case WIRE_READ:
		return "it could not read its input";
	case WIRE_WRITE:
		return "it could not write its output";
	case WIRE_PROTOCOL:
		return "it did not understand this side";
	case WIRE_STOPPED:
		return "it was stopped by a signal";
	case WIRE_ENGINE:
		return "one of its buffers or operations failed";
	case WIRE_MISMATCH:
		return "length or CRC-32C differ";
	case WIRE_PROVIDER:
		return "it uses the other provider";
	case WIRE_USER:
		return "it serves its own user and root only, without --any-user";
	default:
		return "for a reason unknown here";
	}
}

/* A message that does not belong here; ABORT always does, and is an error. */
int peer_unexpected(struct peer *peer, const union wire_msg *msg)
{
	if (msg->head.type == WIRE_ABORT)
		return fail(-ECONNABORTED,
			    "the %s gave up: %s; see its message", peer->role,
			    reason_text(msg->abort.reason));
	return fail(-EPROTO,
		    "the %s broke the protocol: message %u came at the wrong time",
		    peer->role, msg->head.type);
}

/* For use when the socket has something while we expect nothing. */
int peer_check(struct peer *peer)
{
	union wire_msg msg;
	int type = wire_recv(peer, &msg, NULL);

	if (type == -EAGAIN)
		return 0;
	if (type < 0)
		return type;
	if (!type)
		return peer_gone(peer);
	return peer_unexpected(peer, &msg);
}

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What tow send and tow recv say to each other.
 *
 *	sender			receiver
 *	HELLO + 4 fds	->
 *			<-	READY
 *	   chunks by the ring, see ring.h
 *	END		->
 *			<-	VERDICT
 *
 * ABORT may come from either side at any time and ends the transfer.
 *
 * The socket is AF_UNIX SOCK_SEQPACKET: one message is one packet of exactly
 * its structure, in host byte order. Only HELLO carries descriptors.
 */
#ifndef WIRE_H
#define WIRE_H

#include <stdint.h>
#include <sys/types.h>

#define WIRE_MAGIC	0x50574f54u	/* "TOWP" */
#define WIRE_VERSION	1

enum wire_type {
	WIRE_HELLO = 1,
	WIRE_READY = 2,
	WIRE_END = 3,
	WIRE_VERDICT = 4,
	WIRE_ABORT = 5,
};

/* The descriptors of HELLO, in this order. */
enum wire_fd {
	WIRE_FD_PAYLOAD,	/* the slots; read-only */
	WIRE_FD_CONTROL,	/* struct ring_word per slot; read-write */
	WIRE_FD_DATA,		/* eventfd: the sender's engine signals */
	WIRE_FD_CREDIT,		/* eventfd: the receiver signals */
	WIRE_FDS,
};

enum wire_reason {
	WIRE_OK = 0,
	WIRE_READ = 1,		/* could not read its input */
	WIRE_WRITE = 2,		/* could not write its output */
	WIRE_PROTOCOL = 3,	/* did not understand its peer */
	WIRE_STOPPED = 4,	/* got a signal */
	WIRE_ENGINE = 5,	/* an operation or an import failed */
	WIRE_MISMATCH = 6,	/* length or CRC differ */
	WIRE_PROVIDER = 7,	/* the two providers cannot share memory */
	WIRE_USER = 8,		/* does not serve users like its peer */
};

struct wire_head {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
};

struct wire_hello {
	struct wire_head head;
	uint32_t provider;	/* enum tow_provider */
	uint32_t slots;
	uint64_t slot_size;
};

struct wire_ready {
	struct wire_head head;
};

struct wire_end {
	struct wire_head head;
	uint64_t length;	/* of the stream */
	uint64_t chunks;
	uint32_t crc;		/* CRC-32C of the stream */
	uint32_t reserved;	/* 0 */
};

struct wire_verdict {
	struct wire_head head;
	uint64_t length;	/* as the receiver counted */
	uint32_t crc;
	uint32_t reason;	/* WIRE_OK or WIRE_MISMATCH */
};

struct wire_abort {
	struct wire_head head;
	uint32_t reason;
	uint32_t reserved;	/* 0 */
};

union wire_msg {
	struct wire_head head;
	struct wire_hello hello;
	struct wire_ready ready;
	struct wire_end end;
	struct wire_verdict verdict;
	struct wire_abort abort;
};

/* The other side of a connection. */
struct peer {
	int sock;
	pid_t pid;
	uid_t uid;
	const char *role;	/* "sender" or "receiver" */
};

int wire_send(struct peer *peer, enum wire_type type, union wire_msg *msg,
	      const int *fds);
int wire_recv(struct peer *peer, union wire_msg *msg, int *fds);
void wire_abort(struct peer *peer, int err, enum wire_reason reason);

int peer_gone(struct peer *peer);
int peer_unexpected(struct peer *peer, const union wire_msg *msg);
int peer_check(struct peer *peer);

#endif /* WIRE_H */

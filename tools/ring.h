/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ring that carries the chunks of a stream.
 *
 * Chunk c (0, 1, ...) uses slot c % slots:
 * - the sender writes the chunk's length into the slot's word and submits a
 *   COPY_CRC from its private staging slot into the payload slot; the engine,
 *   after the data, stores c + 1 into ready (release) and signals the data
 *   eventfd. Copies of several chunks are in flight at once, in no order;
 * - the receiver takes chunks in order: ready == c + 1 (acquire) means that
 *   length and data are there. When it has written them out it stores c + 1
 *   into credit (release) and signals the credit eventfd;
 * - the sender uses the slot again when credit == c + 1.
 *
 * A word holds either the value awaited or the one before it; any other means
 * that the peer is broken.
 */
#ifndef RING_H
#define RING_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

#define RING_SLOTS		8
#define RING_SLOTS_MAX		1024
#define RING_SLOT_SIZE		(1u << 20)
#define RING_SLOT_SIZE_MIN	4096u
#define RING_SLOT_SIZE_MAX	(1u << 30)
#define RING_TOTAL_MAX		(UINT64_C(4) << 30)

struct tow_buf;
struct tow_ctx;
struct tow_op;

/* One per slot in the control buffer; each half has a cache line of its own. */
struct ring_word {
	uint64_t ready;			/* by the sender's engine */
	uint32_t length;		/* by the sender */
	uint32_t reserved[13];
	uint64_t credit;		/* by the receiver */
	uint64_t reserved2[7];
};

struct ring {
	struct tow_ctx *ctx;
	unsigned int provider;
	unsigned int slots;
	uint64_t slot_size;
	struct tow_buf *staging;	/* sender only */
	struct tow_buf *payload;
	struct tow_buf *control;
	char *input;			/* sender: staging, mapped */
	const char *output;		/* receiver: payload, mapped */
	struct ring_word *words;	/* control, mapped */
	int data_fd, credit_fd;		/* eventfds */
	int payload_fd;			/* sender: read-only, for the peer */
	int data_index;			/* sender: of tow_eventfd_add() */
};

enum ring_state {
	RING_WAIT,			/* the word has not changed yet */
	RING_SET,
	RING_BROKEN,			/* not a value it can have */
};

bool ring_geometry_ok(uint64_t slots, uint64_t slot_size);
int ring_create(struct ring *ring, struct tow_ctx *ctx, unsigned int slots,
		uint64_t slot_size, bool may_shrink);
int ring_import(struct ring *ring, struct tow_ctx *ctx,
		const struct wire_hello *hello, int *fds);
void ring_destroy(struct ring *ring);

enum ring_state ring_word_state(uint64_t word, uint64_t chunk,
				unsigned int slots);
int ring_bell(int event_fd);
void ring_bell_clear(int event_fd);

#endif /* RING_H */

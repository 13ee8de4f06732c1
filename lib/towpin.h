/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libtowpin: pinned buffers shared between processes, and memory operations on
 * them that the kernel module towpin (or, without it, worker threads of the
 * library) carries out.
 *
 * Conventions that hold for every call:
 * - A result of type int is 0 or positive for success and a negative errno for
 *   an error; errno means nothing. Pointers passed for results are written on
 *   success only.
 * - Lengths and offsets are in bytes, times in nanoseconds.
 * - All calls may be made by any thread at any time, with two exceptions:
 *   tow_close() and tow_buf_destroy() end their object, and no other call may
 *   be using it then.
 * - A context belongs to the process that opened it. In a forked child every
 *   call on it but tow_close(), which frees the child's copy, answers -EPERM;
 *   open one of its own there. Until then mappings made by tow_buf_map() stay
 *   usable in the child, and tow_buf_fd() and its like tell what to import.
 * - Each call has a page in section 3 of the manual with its errors.
 *
 * Structures with a size member are versioned by it: set it to sizeof; a newer
 * library understands an older caller.
 */
#ifndef TOWPIN_H
#define TOWPIN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tow_ctx;		/* one open device, or one set of worker threads */
struct tow_buf;		/* a buffer that this context can name */

#define TOW_TIMEOUT_NONE	UINT64_MAX	/* wait for ever */

/* ---- context ---- */

enum tow_provider {
	TOW_PROVIDER_AUTO = 0,	/* the module if it can be opened, else user */
	TOW_PROVIDER_KMOD = 1,	/* /dev/towpin or an error */
	TOW_PROVIDER_USER = 2,	/* memfd buffers and worker threads */
};

struct tow_open_opts {
	size_t size;			/* sizeof(struct tow_open_opts) */
	enum tow_provider provider;	/* AUTO: $TOW_PROVIDER decides if set */
	unsigned int entries;		/* operations in flight; 0: 256 */
	unsigned int workers;		/* user provider's; 0: by cores */
	unsigned int inline_max;	/* user provider's; 0: 16384 */
};

/* With opts NULL: all defaults. tow_close() ends the buffers as well. */
int tow_open(struct tow_ctx **ctx, const struct tow_open_opts *opts);
void tow_close(struct tow_ctx *ctx);

enum tow_engine {
	TOW_ENGINE_NONE = 0,	/* refused or cancelled */
	TOW_ENGINE_INLINE = 1,	/* the submitting thread */
	TOW_ENGINE_CPU = 2,	/* a worker */
};

struct tow_info {
	size_t size;			/* sizeof(struct tow_info) */
	enum tow_provider provider;	/* KMOD or USER */
	unsigned int engines;		/* bit (1 << TOW_ENGINE_*) */
	unsigned int entries;		/* operations in flight at most */
	unsigned int max_handles;	/* buffers and registrations at most */
	unsigned int max_eventfds;
	unsigned int inline_max;	/* bytes done by the submitter */
	unsigned int inflight;		/* operations now */
	uint64_t max_length;		/* of a buffer and operation, bytes */
	uint64_t memlock;		/* RLIMIT_MEMLOCK; UINT64_MAX: none */
	char reason[256];		/* why not the module; "" when it is */
};

int tow_info(struct tow_ctx *ctx, struct tow_info *info);

/* ---- buffers ---- */

#define TOW_RIGHT_READ		(1u << 0)
#define TOW_RIGHT_WRITE		(1u << 1)
#define TOW_BUF_SMALL_PAGES	(1u << 0)
#define TOW_NODE_ANY		(-1)

int tow_buf_create(struct tow_ctx *ctx, uint64_t length, unsigned int flags,
		   int node, struct tow_buf **buf);
int tow_buf_import(struct tow_ctx *ctx, int fd, struct tow_buf **buf);
void tow_buf_destroy(struct tow_buf *buf);

/* A new descriptor, the caller's; tow_buf_fd() is the buffer's own. */
int tow_buf_derive(struct tow_buf *buf, unsigned int rights);
int tow_buf_map(struct tow_buf *buf, void **addr);
int tow_buf_unmap(struct tow_buf *buf);

int tow_buf_fd(const struct tow_buf *buf);
uint64_t tow_buf_length(const struct tow_buf *buf);
unsigned int tow_buf_rights(const struct tow_buf *buf);
uint32_t tow_buf_handle(const struct tow_buf *buf);

/* ---- the caller's own memory ---- */

#define TOW_REG_READ_ONLY	(1u << 0)

int tow_mem_register(struct tow_ctx *ctx, const void *addr, uint64_t length,
		     unsigned int flags, uint32_t *handle);
int tow_mem_unregister(struct tow_ctx *ctx, uint32_t handle);

/* ---- operations ---- */

enum tow_opcode {
	TOW_OP_NOP = 0,
	TOW_OP_COPY = 1,
	TOW_OP_FILL = 2,
	TOW_OP_COMPARE = 3,
	TOW_OP_CRC32C = 4,
	TOW_OP_COPY_CRC = 5,
};

#define TOW_HINT_NORMAL		0
#define TOW_HINT_NOCACHE	1

/*
 * One operation. Zero it, or use the tow_prep_*() functions below; handles are
 * those of tow_buf_handle() and tow_mem_register().
 */
struct tow_op {
	uint8_t opcode;		/* TOW_OP_* */
	uint8_t hint;		/* TOW_HINT_* for what COPY, COPY_CRC write */
	uint8_t notify_size;	/* 0, 4 or 8: bytes of notify_value to store */
	uint8_t reserved;	/* 0 */
	uint32_t seed;		/* CRC of what comes before, 0 at the start */
	uint32_t src;		/* handle that is read */
	uint32_t dst;		/* handle that is written (COMPARE: read) */
	uint64_t src_off;	/* bytes; FILL: the 8-byte pattern */
	uint64_t dst_off;	/* bytes */
	uint64_t len;		/* bytes, at least 1 (NOP: 0) */
	uint32_t notify;	/* handle for notify_value */
	int32_t eventfd;	/* index of tow_eventfd_add() plus 1; 0: none */
	uint64_t notify_off;	/* bytes, aligned to notify_size */
	uint64_t notify_value;	/* stored, with release order, after the data */
};

/* Names an operation in flight until its result has been taken. */
typedef uint64_t tow_token;

struct tow_result {
	int status;		/* 0, or a negative errno */
	enum tow_engine engine;	/* who did it */
	uint64_t bytes;		/* done; COMPARE: equal at the start */
	uint32_t crc;		/* CRC32C, COPY_CRC */
	uint32_t differs;	/* COMPARE: 1 if they differ */
	uint64_t op_id;		/* id in the tracepoints; 0: user provider */
};

/*
 * How many were started, from the first on; the result of each is to be taken
 * once by one of the others (1, 0, and an index of tokens when it was), where
 * result may be NULL. tow_run() does both for one.
 */
int tow_submit(struct tow_ctx *ctx, const struct tow_op *ops, unsigned int n,
	       tow_token *tokens);
int tow_test(struct tow_ctx *ctx, tow_token token, struct tow_result *result);
int tow_wait(struct tow_ctx *ctx, tow_token token, uint64_t timeout,
	     struct tow_result *result);
int tow_wait_any(struct tow_ctx *ctx, const tow_token *tokens, unsigned int n,
		 uint64_t timeout, struct tow_result *result);
int tow_run(struct tow_ctx *ctx, const struct tow_op *op,
	    struct tow_result *result);

/* ---- events ---- */

int tow_fd(struct tow_ctx *ctx);
int tow_eventfd_add(struct tow_ctx *ctx, int fd);
int tow_eventfd_del(struct tow_ctx *ctx, int index);

/* ---- helpers ---- */

const char *tow_version(void);
uint32_t tow_crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t len_b);

static inline void tow_prep_nop(struct tow_op *op)
{
	memset(op, 0, sizeof(*op));
}

static inline void tow_prep_copy(struct tow_op *op, uint32_t dst,
				 uint64_t dst_off, uint32_t src,
				 uint64_t src_off, uint64_t len)
{
	tow_prep_nop(op);
	op->opcode = TOW_OP_COPY;
	op->dst = dst;
	op->dst_off = dst_off;
	op->src = src;
	op->src_off = src_off;
	op->len = len;
}

static inline void tow_prep_copy_crc(struct tow_op *op, uint32_t dst,
				     uint64_t dst_off, uint32_t src,
				     uint64_t src_off, uint64_t len,
				     uint32_t seed)
{
	tow_prep_copy(op, dst, dst_off, src, src_off, len);
	op->opcode = TOW_OP_COPY_CRC;
	op->seed = seed;
}

static inline void tow_prep_compare(struct tow_op *op, uint32_t a,
				    uint64_t a_off, uint32_t b, uint64_t b_off,
				    uint64_t len)
{
	tow_prep_copy(op, b, b_off, a, a_off, len);
	op->opcode = TOW_OP_COMPARE;
}

static inline void tow_prep_fill(struct tow_op *op, uint32_t dst,
				 uint64_t dst_off, uint64_t len,
				 uint64_t pattern)
{
	tow_prep_nop(op);
	op->opcode = TOW_OP_FILL;
	op->dst = dst;
	op->dst_off = dst_off;
	op->len = len;
	op->src_off = pattern;
}

static inline void tow_prep_crc32c(struct tow_op *op, uint32_t src,
				   uint64_t src_off, uint64_t len,
				   uint32_t seed)
{
	tow_prep_nop(op);
	op->opcode = TOW_OP_CRC32C;
	op->src = src;
	op->src_off = src_off;
	op->len = len;
	op->seed = seed;
}

/* After the data: store the low size (4 or 8) bytes of value at the offset. */
static inline void tow_op_store(struct tow_op *op, uint32_t handle,
				uint64_t off, uint64_t value,
				unsigned int size)
{
	op->notify = handle;
	op->notify_off = off;
	op->notify_value = value;
	op->notify_size = (uint8_t)size;
}

/* When it is complete: signal the eventfd of that tow_eventfd_add() index. */
static inline void tow_op_signal(struct tow_op *op, int index)
{
	op->eventfd = index + 1;
}

#ifdef __cplusplus
}
#endif

#endif /* TOWPIN_H */

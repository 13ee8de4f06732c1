// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* What SUBMIT refuses, in which order, and what a refusal leaves behind. */
#include "test.h"

#include <sys/eventfd.h>
#include <sys/mman.h>

#define LENGTH	KIB(64)

struct fixture {
	struct tow_ctx *ctx;
	uint32_t rw, ro, odd;	/* handles; odd begins at an odd address */
	int event;
	unsigned char *map;
	char memory[64] __attribute__((aligned(64)));
};

static void setup(struct fixture *f, unsigned int entries)
{
	struct tow_buf *buf, *ro;
	int fd;

	f->ctx = open_ctx(entries);
	buf = new_buf(f->ctx, LENGTH, &f->map);
	f->rw = tow_buf_handle(buf);
	fd = ok(tow_buf_derive(buf, TOW_RIGHT_READ));
	ok(tow_buf_import(f->ctx, fd, &ro));
	f->ro = tow_buf_handle(ro);
	close(fd);
	ok(tow_mem_register(f->ctx, f->memory + 1, 63, 0, &f->odd));
	fd = eventfd(0, EFD_CLOEXEC);
	f->event = ok(tow_eventfd_add(f->ctx, fd));
	close(fd);
}

#define NONE	0x7fff		/* a handle that was never given */
#define MAXLEN	(1ull << 40)

static void refuse(struct fixture *f, const struct tow_op *op, int err,
		   int line)
{
	tow_token token = 0x1234;

	check_fails(tow_submit(f->ctx, op, 1, &token), err, "tow_submit",
		    __FILE__, line);
	assert_int_equal(token, 0x1234);
}

/* What differs from a valid operation of this opcode. */
#define REFUSE(err, code, ...)						\
	do {								\
		struct tow_op op_ = valid(f, code);			\
		struct tow_op *op = &op_;				\
									\
		__VA_ARGS__;						\
		refuse(f, op, err, __LINE__);				\
	} while (0)

static struct tow_op valid(const struct fixture *f, int opcode)
{
	struct tow_op op;

	switch (opcode) {
	case TOW_OP_COPY:
		tow_prep_copy(&op, f->rw, 0, f->ro, 0, 64);
		break;
	case TOW_OP_FILL:
		tow_prep_fill(&op, f->rw, 0, 64, 1);
		break;
	case TOW_OP_COMPARE:
		tow_prep_compare(&op, f->ro, 0, f->ro, 0, 64);
		break;
	case TOW_OP_CRC32C:
		tow_prep_crc32c(&op, f->ro, 0, 64, 1);
		break;
	case TOW_OP_COPY_CRC:
		tow_prep_copy_crc(&op, f->rw, 0, f->ro, 0, 64, 1);
		break;
	default:
		tow_prep_nop(&op);
		break;
	}
	return op;
}

static void all_valid(void **state)
{
	struct fixture fix, *f = &fix;
	int code;

	(void)state;
	setup(f, 4);
	for (code = TOW_OP_NOP; code <= TOW_OP_COPY_CRC; code++) {
		struct tow_op op = valid(f, code);

		run_ok(f->ctx, &op);
		tow_op_store(&op, f->rw, LENGTH - 8, 1, 8);
		tow_op_signal(&op, f->event);
		run_ok(f->ctx, &op);
	}
	tow_close(f->ctx);
}

static void fields(void **state)
{
	struct fixture fix, *f = &fix;
	int code;

	(void)state;
	setup(f, 4);
	REFUSE(EINVAL, TOW_OP_NOP, op->opcode = 6);
	REFUSE(EINVAL, TOW_OP_NOP, op->opcode = 255);
	for (code = TOW_OP_NOP; code <= TOW_OP_COPY_CRC; code++) {
		REFUSE(EINVAL, code, op->reserved = 1);
		REFUSE(EINVAL, code, op->hint = 2);
		REFUSE(EINVAL, code, op->notify_size = 1);
		REFUSE(EINVAL, code, op->notify_size = 16);
		REFUSE(EINVAL, code, op->notify = f->rw);
		REFUSE(EINVAL, code, op->notify_off = 8);
		REFUSE(EINVAL, code, op->notify_value = 1);
		REFUSE(EINVAL, code, op->eventfd = -1);
		REFUSE(EINVAL, code, op->eventfd = 4097);
		REFUSE(EINVAL, code, op->eventfd = 65537);
		REFUSE(EINVAL, code, tow_op_store(op, f->rw, 4, 1, 8));
		REFUSE(EINVAL, code, tow_op_store(op, f->rw, 2, 1, 4));
		REFUSE(EINVAL, code, tow_op_store(op, f->odd, 8, 1, 4));
		REFUSE(ENOENT, code, tow_op_store(op, NONE, 0, 1, 4));
		REFUSE(ENOENT, code, tow_op_store(op, 0, 0, 1, 4));
		REFUSE(EACCES, code, tow_op_store(op, f->ro, 0, 1, 4));
		REFUSE(ERANGE, code, tow_op_store(op, f->rw, LENGTH, 1, 4));
		REFUSE(ERANGE, code,
		       tow_op_store(op, f->rw, UINT64_MAX - 7, 1, 8));
		REFUSE(ENOENT, code, tow_op_signal(op, f->event + 1));
		REFUSE(ENOENT, code, tow_op_signal(op, 4095));
		if (code == TOW_OP_NOP) {
			REFUSE(EINVAL, code, op->len = 1);
		} else {
			REFUSE(EINVAL, code, op->len = 0);
			REFUSE(EOVERFLOW, code, op->len = MAXLEN + 1);
			REFUSE(ERANGE, code, op->len = MAXLEN);
			REFUSE(ERANGE, code, op->len = LENGTH + 1);
		}
		if (code != TOW_OP_COPY && code != TOW_OP_COPY_CRC)
			REFUSE(EINVAL, code, op->hint = TOW_HINT_NOCACHE);
		if (code != TOW_OP_CRC32C && code != TOW_OP_COPY_CRC)
			REFUSE(EINVAL, code, op->seed = 1);

		if (code == TOW_OP_NOP || code == TOW_OP_FILL) {
			REFUSE(EINVAL, code, op->src = f->rw);
		} else {
			REFUSE(ENOENT, code, op->src = 0);
			REFUSE(ENOENT, code, op->src = NONE);
			REFUSE(ENOENT, code, op->src = UINT32_MAX);
			REFUSE(ERANGE, code, op->src_off = LENGTH - 63);
			REFUSE(ERANGE, code, op->src_off = UINT64_MAX - 64);
			REFUSE(EOVERFLOW, code, op->src_off = UINT64_MAX - 63);
		}
		if (code == TOW_OP_NOP)
			REFUSE(EINVAL, code, op->src_off = 1);

		if (code == TOW_OP_NOP || code == TOW_OP_CRC32C) {
			REFUSE(EINVAL, code, op->dst = f->rw);
			REFUSE(EINVAL, code, op->dst_off = 1);
		} else {
			REFUSE(ENOENT, code, op->dst = 0);
			REFUSE(ENOENT, code, op->dst = NONE);
			REFUSE(ERANGE, code, op->dst_off = LENGTH - 63);
			REFUSE(EOVERFLOW, code, op->dst_off = UINT64_MAX - 63);
			if (code != TOW_OP_COMPARE)
				REFUSE(EACCES, code, op->dst = f->ro);
		}
	}
	tow_close(f->ctx);
}

/* Of an entry with two faults, which one is told. */
static void precedence(void **state)
{
	struct fixture fix, *f = &fix;

	(void)state;
	setup(f, 1);
	REFUSE(EINVAL, TOW_OP_COPY, op->seed = 1; op->len = MAXLEN + 1);
	REFUSE(EINVAL, TOW_OP_COPY, op->hint = 7; op->src = NONE);
	REFUSE(EOVERFLOW, TOW_OP_COPY, op->src = NONE; op->len = MAXLEN + 1);
	REFUSE(EOVERFLOW, TOW_OP_COPY, op->dst = f->ro;
	       op->dst_off = UINT64_MAX);
	REFUSE(ENOENT, TOW_OP_COPY, op->src = NONE; op->dst = f->ro);
	REFUSE(ERANGE, TOW_OP_COPY, op->src_off = LENGTH; op->dst = f->ro);
	REFUSE(EACCES, TOW_OP_COPY, op->dst = f->ro; op->dst_off = LENGTH);
	REFUSE(EACCES, TOW_OP_COPY, op->dst = f->ro;
	       tow_op_store(op, NONE, 0, 1, 4));
	REFUSE(ENOENT, TOW_OP_COPY, tow_op_store(op, NONE, 0, 1, 4);
	       tow_op_signal(op, 99));
	REFUSE(EINVAL, TOW_OP_COPY, tow_op_store(op, f->odd, 0, 1, 4);
	       tow_op_signal(op, 99));
	tow_close(f->ctx);
}

static void queue_is_full(void **state)
{
	struct fixture fix, *f = &fix;
	struct tow_op op;
	tow_token token;

	(void)state;
	setup(f, 1);
	tow_prep_nop(&op);
	ok(tow_submit(f->ctx, &op, 1, &token));
	/* With no slot nothing of an entry is looked at. */
	op.opcode = 99;
	fails(tow_submit(f->ctx, &op, 1, &token), EAGAIN);
	fails(tow_run(f->ctx, &op, NULL), EAGAIN);
	assert_int_equal(tow_test(f->ctx, token, NULL), 1);
	fails(tow_submit(f->ctx, &op, 1, &token), EINVAL);
	tow_close(f->ctx);
}

static void arguments(void **state)
{
	struct tow_ctx *ctx = open_ctx(1);
	struct tow_op op;
	tow_token token;

	(void)state;
	tow_prep_nop(&op);
	fails(tow_submit(NULL, &op, 1, &token), EINVAL);
	fails(tow_submit(ctx, NULL, 1, &token), EINVAL);
	fails(tow_submit(ctx, &op, 1, NULL), EINVAL);
	fails(tow_submit(ctx, &op, 0, &token), EINVAL);
	fails(tow_run(ctx, NULL, NULL), EINVAL);
	fails(tow_run(NULL, &op, NULL), EINVAL);
	tow_close(ctx);
}

/*
 * The first refused entry ends the batch: those before are done, it and those
 * after have had no effect, and submitting from there tells why.
 */
static void batch(void **state)
{
	enum { N = 300 };
	struct fixture fix, *f = &fix;
	static const int bad_at[] = { 0, 1, 127, 255, 256, 257, N - 1 };
	struct tow_op ops[N];
	tow_token tokens[N];
	unsigned int i, k;

	(void)state;
	setup(f, 512);
	for (i = 0; i < 2 * ARRAY_LEN(bad_at); i++) {
		int bad = bad_at[i / 2];

		memset(f->map, 0, LENGTH);
		memset(tokens, 0, sizeof(tokens));
		for (k = 0; k < N; k++)
			tow_prep_fill(&ops[k], f->rw, 8 * k, 8, ~0ull);
		/* One that the library refuses, and one that it passes on */
		if (i & 1)
			ops[bad].reserved = 1;
		else
			ops[bad].dst = NONE;

		if (bad)
			assert_int_equal(ok(tow_submit(f->ctx, ops, N, tokens)),
					 bad);
		fails(tow_submit(f->ctx, ops + bad, (unsigned int)(N - bad),
				 tokens + bad),
		      i & 1 ? EINVAL : ENOENT);
		for (k = 0; k < N; k++) {
			if (k < (unsigned int)bad)
				assert_int_equal(ok(tow_wait(f->ctx, tokens[k],
							     TOW_TIMEOUT_NONE,
							     NULL)), 0);
			else
				assert_int_equal(tokens[k], 0);
			assert_int_equal(f->map[8 * k],
					 k < (unsigned int)bad ? 0xff : 0);
		}
	}
	tow_close(f->ctx);
}

/* A refused entry gives its slot back, in any number. */
static void slots_return(void **state)
{
	struct fixture fix, *f = &fix;
	struct tow_op ops[4];
	tow_token tokens[4];
	unsigned int i, k;

	(void)state;
	setup(f, 4);
	for (i = 0; i < 50; i++) {
		for (k = 0; k < 4; k++)
			ops[k] = valid(f, TOW_OP_COPY);
		ops[i % 4].src = NONE;
		if (i % 4)
			assert_int_equal(ok(tow_submit(f->ctx, ops, 4,
						       tokens)), i % 4);
		else
			fails(tow_submit(f->ctx, ops, 4, tokens), ENOENT);
		for (k = 0; k < i % 4; k++)
			assert_int_equal(tow_wait(f->ctx, tokens[k],
						  TOW_TIMEOUT_NONE, NULL), 0);
	}
	assert_int_equal(inflight(f->ctx), 0);
	for (k = 0; k < 4; k++)
		ops[k] = valid(f, TOW_OP_NOP);
	assert_int_equal(ok(tow_submit(f->ctx, ops, 4, tokens)), 4);
	tow_close(f->ctx);
}

static void queue_full(void **state)
{
	struct tow_ctx *ctx = open_ctx(4);
	struct tow_op ops[6];
	tow_token tokens[6], more[6];
	unsigned int i;

	(void)state;
	for (i = 0; i < 6; i++)
		tow_prep_nop(&ops[i]);
	assert_int_equal(ok(tow_submit(ctx, ops, 6, tokens)), 4);
	fails(tow_submit(ctx, ops, 6, more), EAGAIN);
	assert_int_equal(tow_test(ctx, tokens[2], NULL), 1);
	assert_int_equal(ok(tow_submit(ctx, ops, 6, more)), 1);
	fails(tow_submit(ctx, ops, 1, more + 1), EAGAIN);
	for (i = 0; i < 4; i++)
		assert_int_equal(tow_test(ctx, i == 2 ? more[0] : tokens[i],
					  NULL), 1);
	assert_int_equal(ok(tow_submit(ctx, ops, 4, tokens)), 4);
	tow_close(ctx);
}

const struct CMUnitTest errno_tests[] = {
	cmocka_unit_test(all_valid),
	cmocka_unit_test(fields),
	cmocka_unit_test(precedence),
	cmocka_unit_test(arguments),
	cmocka_unit_test(queue_is_full),
	cmocka_unit_test(batch),
	cmocka_unit_test(slots_return),
	cmocka_unit_test(queue_full),
};
const size_t nr_errno_tests = ARRAY_LEN(errno_tests);

// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the tracepoint test traces, in known numbers: workload INLINE WORKER.
 *
 * One context, one buffer, attached and a destination, one registration, a
 * source; that many operations of at most inline_max bytes and of more, one wait
 * for each sort, one call that is refused, both handles given back. Says on
 * standard output what the tracepoints should: a line for each operation as its
 * record tells it,
 *	op ID engine ENGINE opcode OPCODE bytes BYTES
 * one for each event with its count,
 *	count EVENT NUMBER
 * and when all that took place, in CLOCK_MONOTONIC ns,
 *	time BEGIN END
 */
#include "fixture.h"

#define WORKER_MAX	KIB(256)

/* The @i-th operation, of @bytes at most. */
static struct towpin_op make_op(uint32_t i, uint64_t bytes, uint32_t src,
				uint32_t dst)
{
	struct towpin_op op = { .slot = i, .len = bytes - i };

	switch (i % 4) {
	case 0:
		op.opcode = TOWPIN_OP_COPY;
		op.src = src;
		op.dst = dst;
		break;
	case 1:
		op.opcode = TOWPIN_OP_FILL;
		op.dst = dst;
		op.src_off = 0x0123456789abcdef;
		break;
	case 2:
		op.opcode = TOWPIN_OP_CRC32C;
		op.src = src;
		break;
	case 3:
		op.opcode = TOWPIN_OP_COPY_CRC;
		op.src = src;
		op.dst = dst;
		break;
	}
	return op;
}

static int fail(const char *what)
{
	perror(what);
	return 1;
}

/* Submit slots @from to @to - 1 and wait for them. 0 or -1. */
static int run(int dev, struct towpin_op *ops, uint32_t from, uint32_t to)
{
	uint32_t slots[TOWPIN_MAX_ENTRIES], i, done;

	for (i = from; i < to; i++)
		slots[i - from] = i;
	if (dev_submit(dev, ops + from, to - from, NULL))
		return -1;
	return dev_wait(dev, slots, to - from, to - from, FOREVER, &done);
}

int main(int argc, char **argv)
{
	uint32_t nr_inline = argc > 1 ? atoi(argv[1]) : 0;
	uint32_t nr_worker = argc > 2 ? atoi(argv[2]) : 0;
	uint32_t nr = nr_inline + nr_worker, i;
	struct towpin_info info = { .size = sizeof(info) };
	static struct towpin_op ops[TOWPIN_MAX_ENTRIES];
	const volatile struct towpin_record *records;
	uint64_t begin = now_ns(), length;
	int dev, buf, src, dst;
	char *memory;

	if (!nr_inline || !nr_worker || nr > TOWPIN_MAX_ENTRIES) {
		fprintf(stderr, "usage: workload INLINE WORKER\n");
		return 2;
	}
	dev = dev_open();
	if (dev < 0 || dev_setup(dev, nr, &length) ||
	    dev_ioctl(dev, TOWPIN_IOC_INFO, &info))
		return fail("/dev/towpin");
	memory = malloc(WORKER_MAX);
	memset(memory, 0x5a, WORKER_MAX);
	records = dev_records(dev, length);
	buf = buf_create(dev, WORKER_MAX);
	dst = mem_attach(dev, buf);
	src = mem_register(dev, memory, WORKER_MAX, TOWPIN_REG_READ_ONLY);
	close(buf);
	if (dst < 0 || src < 0 || records == MAP_FAILED)
		return fail("memory");

	for (i = 0; i < nr; i++)
		ops[i] = make_op(i, i < nr_inline ? info.inline_max :
				 WORKER_MAX, src, dst);
	/* NOP is an operation too. */
	ops[0] = (struct towpin_op){ .opcode = TOWPIN_OP_NOP };
	if (run(dev, ops, 0, nr_inline) || run(dev, ops, nr_inline, nr))
		return fail("operations");
	/* The one error: there is no such handle. */
	if (mem_detach(dev, TOWPIN_MAX_HANDLES, 0) != -ENOENT)
		return fail("DETACH was not refused");
	if (mem_detach(dev, src, 0) || mem_detach(dev, dst, 0))
		return fail("DETACH");

	for (i = 0; i < nr; i++) {
		if (records[i].status != TOWPIN_ST_SUCCESS)
			return fail("an operation failed");
		printf("op %llu engine %u opcode %u bytes %llu\n",
		       (unsigned long long)records[i].op_id, records[i].engine,
		       ops[i].opcode, (unsigned long long)records[i].bytes);
	}
	munmap((void *)records, length);
	close(dev);
	printf("count towpin_attach 1\ncount towpin_buf_create 1\n"
	       "count towpin_buf_free 1\ncount towpin_complete %u\n"
	       "count towpin_detach 2\ncount towpin_engine_start %u\n"
	       "count towpin_error 1\ncount towpin_register 1\n"
	       "count towpin_submit %u\ncount towpin_wait_begin 2\n"
	       "count towpin_wait_end 2\n", nr, nr, nr);
	printf("time %llu %llu\n", (unsigned long long)begin,
	       (unsigned long long)now_ns());
	return 0;
}

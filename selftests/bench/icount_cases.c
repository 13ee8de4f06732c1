// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cases of the icount benchmark: the module, the library, and for
 * comparison what the system has for the same purpose.
 *
 * Invariants: the buffers are two, so that no copy takes the path of overlaps;
 * each operation of a batch has a slot and bytes of its own.
 */
#include <sys/uio.h>

#include "../module/fixture.h"
#include "icount.h"

void bench_run_nothing(struct bench *b)
{
	(void)b;
}

void bench_run_thousand(struct bench *b)
{
	(void)b;
	__asm__ volatile(".rept 1000\n\tnop\n\t.endr");
}

static void run_getpid(struct bench *b)
{
	(void)b;
	getpid();
}

/* What an ioctl of the device costs that does nothing. */
static void run_ioctl_none(struct bench *b)
{
	if (ioctl(b->dev, _IO(TOWPIN_IOC_MAGIC, 0xff), NULL) != -1)
		b->failed = true;
}

/* The size is a variable here, so this is the C library's. */
static void run_memcpy(struct bench *b)
{
	memcpy(b->dst, b->src, b->size);
	__asm__ volatile("" ::: "memory");
}

static void run_pipe(struct bench *b)
{
	ssize_t size = (ssize_t)b->size;

	if (write(b->pipe[1], b->src, b->size) != size ||
	    read(b->pipe[0], b->dst, b->size) != size)
		b->failed = true;
}

static void run_vm_readv(struct bench *b)
{
	struct iovec local = { .iov_base = b->dst, .iov_len = b->size };
	struct iovec remote = { .iov_base = b->src, .iov_len = b->size };

	if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) !=
	    (ssize_t)b->size)
		b->failed = true;
}

static uint8_t record_status(const struct bench *b, unsigned int slot)
{
	return __atomic_load_n(&b->records[slot].status, __ATOMIC_ACQUIRE);
}

static void run_ioctl(struct bench *b)
{
	unsigned int i;

	if (dev_submit(b->dev, b->ops, b->n, NULL))
		b->failed = true;
	for (i = 0; i < b->n; i++)
		if (record_status(b, i) != TOWPIN_ST_SUCCESS)
			b->failed = true;
}

static void run_ioctl_wait(struct bench *b)
{
	if (dev_submit(b->dev, b->ops, 1, NULL) || dev_wait_one(b->dev, 0) ||
	    record_status(b, 0) != TOWPIN_ST_SUCCESS ||
	    b->records[0].engine != TOWPIN_ENGINE_CPU)
		b->failed = true;
}

static void run_lib(struct bench *b)
{
	struct tow_result result;
	unsigned int i;

	if (tow_submit(b->ctx, b->lib_ops, b->n, b->tokens) != (int)b->n)
		b->failed = true;
	for (i = 0; i < b->n; i++)
		if (tow_test(b->ctx, b->tokens[i], &result) != 1 ||
		    result.status)
			b->failed = true;
}

static void run_lib_wait(struct bench *b)
{
	struct tow_result result;

	if (tow_submit(b->ctx, b->lib_ops, 1, b->tokens) != 1 ||
	    tow_wait(b->ctx, b->tokens[0], TOW_TIMEOUT_NONE, &result) ||
	    result.status || result.engine != TOW_ENGINE_CPU)
		b->failed = true;
}

#define CASE(_key, _what, _run, _size, _n)				\
	{								\
		.key = (_key), .what = (_what), .run = (_run),		\
		.size = (_size), .n = (_n), .copies = (_size) != 0,	\
	}

const struct bench_case bench_cases[] = {
	CASE("getpid", "getpid()", run_getpid, 0, 1),
	CASE("memcpy_64", "memcpy(), 64 B", run_memcpy, 64, 1),
	CASE("memcpy_4096", "memcpy(), 4 KiB", run_memcpy, 4096, 1),
	CASE("memcpy_65536", "memcpy(), 64 KiB", run_memcpy, ASYNC, 1),

	CASE("pipe_64", "pipe write + read, 64 B", run_pipe, 64, 1),
	CASE("pipe_4096", "pipe write + read, 4 KiB", run_pipe, 4096, 1),
	CASE("vm_readv_64", "process_vm_readv(), 64 B", run_vm_readv, 64, 1),
	CASE("vm_readv_4096", "process_vm_readv(), 4 KiB", run_vm_readv, 4096,
	     1),

	CASE("ioctl_none", "ioctl that is refused", run_ioctl_none, 0, 1),
	CASE("ioctl_nop", "ioctl, NOP", run_ioctl, 0, 1),
	CASE("ioctl_copy_64", "ioctl, copy 64 B", run_ioctl, 64, 1),
	CASE("ioctl_copy_4096", "ioctl, copy 4 KiB", run_ioctl, 4096, 1),
	CASE("ioctl_nop_batch", "ioctl, 32 x NOP", run_ioctl, 0, BATCH),
	CASE("ioctl_copy_64_batch", "ioctl, 32 x copy 64 B", run_ioctl, 64,
	     BATCH),
	CASE("ioctl_copy_4096_batch", "ioctl, 32 x copy 4 KiB", run_ioctl, 4096,
	     BATCH),
	CASE("ioctl_copy_65536_wait", "ioctl, worker copies 64 KiB, WAIT",
	     run_ioctl_wait, ASYNC, 1),

	CASE("lib_nop", "libtowpin, NOP", run_lib, 0, 1),
	CASE("lib_copy_64", "libtowpin, copy 64 B", run_lib, 64, 1),
	CASE("lib_copy_4096", "libtowpin, copy 4 KiB", run_lib, 4096, 1),
	CASE("lib_nop_batch", "libtowpin, 32 x NOP", run_lib, 0, BATCH),
	CASE("lib_copy_64_batch", "libtowpin, 32 x copy 64 B", run_lib, 64,
	     BATCH),
	CASE("lib_copy_4096_batch", "libtowpin, 32 x copy 4 KiB", run_lib, 4096,
	     BATCH),
	CASE("lib_copy_65536_wait", "libtowpin, worker copies 64 KiB, tow_wait()",
	     run_lib_wait, ASYNC, 1),
};

const unsigned int bench_nr_cases =
	sizeof(bench_cases) / sizeof(bench_cases[0]);

/* ---- around them ---- */

/* A buffer, its handle in each of the two contexts, and its bytes. */
static char *buffer(struct bench *b, uint32_t *handle, uint32_t *lib_handle)
{
	int fd = buf_create(b->dev, BUFFER_LENGTH);
	int raw = fd < 0 ? fd : mem_attach(b->dev, fd);
	struct tow_buf *buf;
	void *addr;

	if (raw < 0 || tow_buf_import(b->ctx, fd, &buf) ||
	    tow_buf_map(buf, &addr))
		return NULL;
	*handle = (uint32_t)raw;
	*lib_handle = tow_buf_handle(buf);
	close(fd);
	return addr;
}

bool bench_open(struct bench *b)
{
	struct tow_open_opts opts = {
		.size = sizeof(opts),
		.provider = TOW_PROVIDER_KMOD,
		.entries = BATCH,
	};
	uint64_t length;

	b->dev = dev_open();
	if (b->dev < 0 || dev_setup(b->dev, BATCH, &length) ||
	    tow_open(&b->ctx, &opts) || pipe(b->pipe))
		return false;
	b->records = dev_records(b->dev, length);
	b->src = buffer(b, &b->src_handle, &b->lib_src);
	b->dst = buffer(b, &b->dst_handle, &b->lib_dst);
	return b->records != MAP_FAILED && b->src && b->dst;
}

static void prepare_op(struct bench *b, uint16_t slot, size_t size)
{
	struct tow_op *lib = &b->lib_ops[slot];
	struct towpin_op *op = &b->ops[slot];
	uint64_t off = slot * size;

	*op = (struct towpin_op) { .slot = slot };
	tow_prep_nop(lib);
	if (!size)
		return;
	op->opcode = TOWPIN_OP_COPY;
	op->src = b->src_handle;
	op->dst = b->dst_handle;
	op->src_off = off;
	op->dst_off = off;
	op->len = size;
	tow_prep_copy(lib, b->lib_dst, off, b->lib_src, off, size);
}

void bench_prepare(struct bench *b, const struct bench_case *c)
{
	uint16_t slot;
	size_t i;

	b->size = c->size;
	b->n = c->n;
	b->failed = false;
	for (i = 0; i < BUFFER_LENGTH; i++)
		b->src[i] = (char)(i * 7 + i / 4096 + c->size);
	memset(b->dst, 0, BUFFER_LENGTH);
	for (slot = 0; slot < c->n; slot++)
		prepare_op(b, slot, c->size);
}

bool bench_verify(const struct bench *b, const struct bench_case *c)
{
	return !b->failed &&
	       (!c->copies || !memcmp(b->dst, b->src, c->n * c->size));
}

void bench_close(struct bench *b)
{
	munmap((void *)(uintptr_t)b->records, 1);
	close(b->dev);
	tow_close(b->ctx);
	close(b->pipe[0]);
	close(b->pipe[1]);
}

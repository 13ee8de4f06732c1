// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Registration of the caller's own memory. */
#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>

static unsigned char *map_anon(size_t n, int prot)
{
	void *at = mmap(NULL, n, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	return at;
}

static void unaligned(void **state)
{
	struct tow_ctx *ctx = open_ctx(4);
	unsigned char *mem = map_anon(KIB(64), PROT_READ | PROT_WRITE);
	unsigned char *want = malloc(KIB(64));
	unsigned int i;

	(void)state;
	rnd_bytes(mem, KIB(64));
	memcpy(want, mem, KIB(64));
	for (i = 0; i < rounds(200); i++) {
		size_t len = 1 + rnd_below(KIB(16));
		size_t from = rnd_below(KIB(32) - len);
		size_t to = KIB(32) + rnd_below(KIB(32) - len);
		size_t skip_bytes = rnd_below(len);
		uint32_t src, dst;
		struct tow_op op;

		ok(tow_mem_register(ctx, mem + from, len, TOW_REG_READ_ONLY,
				    &src));
		ok(tow_mem_register(ctx, mem + to, len, 0, &dst));
		assert_int_not_equal(src, 0);
		assert_int_not_equal(src, dst);
		tow_prep_copy(&op, dst, 0, src, skip_bytes, len - skip_bytes);
		run_ok(ctx, &op);
		memcpy(want + to, want + from + skip_bytes, len - skip_bytes);
		assert_memory_equal(mem, want, KIB(64));

		/* Not a byte beyond */
		tow_prep_copy(&op, dst, 1, src, 0, len);
		fails(tow_run(ctx, &op, NULL), ERANGE);
		tow_prep_fill(&op, src, 0, 1, 0);
		fails(tow_run(ctx, &op, NULL), EACCES);
		ok(tow_mem_unregister(ctx, src));
		ok(tow_mem_unregister(ctx, dst));
		fails(tow_run(ctx, &op, NULL), ENOENT);
	}
	free(want);
	munmap(mem, KIB(64));
	tow_close(ctx);
}

static void errors(void **state)
{
	struct tow_ctx *ctx = open_ctx(1);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *mem = map_anon(4 * page, PROT_READ | PROT_WRITE);
	unsigned char *ro = map_anon(page, PROT_READ);
	unsigned char *none = map_anon(page, PROT_NONE);
	uint32_t h = 12345;

	(void)state;
	munmap(mem + 2 * page, page);
	fails(tow_mem_register(NULL, mem, 1, 0, &h), EINVAL);
	fails(tow_mem_register(ctx, mem, 1, 0, NULL), EINVAL);
	fails(tow_mem_register(ctx, mem, 0, 0, &h), EINVAL);
	fails(tow_mem_register(ctx, mem, 1, 2, &h), EINVAL);
	fails(tow_mem_register(ctx, mem, (1ull << 40) + 1, 0, &h), EOVERFLOW);
	fails(tow_mem_register(ctx, (void *)-4096, 8192, 0, &h), EOVERFLOW);
	fails(tow_mem_register(ctx, NULL, 1, 0, &h), EFAULT);
	fails(tow_mem_register(ctx, mem + 2 * page, 1, 0, &h), EFAULT);
	fails(tow_mem_register(ctx, mem, 4 * page, 0, &h), EFAULT);
	fails(tow_mem_register(ctx, mem + 2 * page - 1, 2, 0, &h), EFAULT);
	fails(tow_mem_register(ctx, mem + 3 * page - 1, 2, 0, &h), EFAULT);
	fails(tow_mem_register(ctx, none, 1, 0, &h), EFAULT);
	fails(tow_mem_register(ctx, none, 1, TOW_REG_READ_ONLY, &h), EFAULT);
	fails(tow_mem_register(ctx, ro, page, 0, &h), EFAULT);
	assert_int_equal(h, 12345);
	ok(tow_mem_register(ctx, ro, page, TOW_REG_READ_ONLY, &h));
	ok(tow_mem_unregister(ctx, h));
	fails(tow_mem_unregister(ctx, h), ENOENT);
	fails(tow_mem_unregister(ctx, 0), ENOENT);
	fails(tow_mem_unregister(ctx, 65536), ENOENT);
	fails(tow_mem_unregister(ctx, UINT32_MAX), ENOENT);
	fails(tow_mem_unregister(NULL, h), EINVAL);
	/* Whole pages up to the hole, and beyond it */
	ok(tow_mem_register(ctx, mem, 2 * page, 0, &h));
	ok(tow_mem_register(ctx, mem + 3 * page, page, 0, &h));
	munmap(mem, 4 * page);
	munmap(ro, page);
	munmap(none, page);
	tow_close(ctx);
}

/* Memory that a registration touches first; a file; a buffer. */
static void kinds(void **state)
{
	struct tow_ctx *ctx = open_ctx(1);
	unsigned char *mem = map_anon(KIB(64), PROT_READ | PROT_WRITE);
	char name[] = "/tmp/tow-test-XXXXXX";
	unsigned char *file, *map;
	struct tow_op op;
	struct tow_buf *buf;
	uint32_t a, b;
	int fd;

	(void)state;
	ok(tow_mem_register(ctx, mem, KIB(64), 0, &a));
	tow_prep_fill(&op, a, 0, KIB(64), 0x0101010101010101);
	run_ok(ctx, &op);
	assert_int_equal(mem[KIB(64) - 1], 1);

	fd = mkstemp(name);
	unlink(name);
	assert_int_equal(ftruncate(fd, KIB(8)), 0);
	file = mmap(NULL, KIB(8), PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	ok(tow_mem_register(ctx, file, KIB(8), 0, &b));
	tow_prep_copy(&op, b, 0, a, 0, KIB(8));
	run_ok(ctx, &op);
	assert_int_equal(file[KIB(8) - 1], 1);
	ok(tow_mem_unregister(ctx, b));
	/* Beyond the end of the file there is no page. */
	assert_int_equal(ftruncate(fd, KIB(4)), 0);
	fails(tow_mem_register(ctx, file, KIB(8), 0, &b), EFAULT);
	munmap(file, KIB(8));
	close(fd);

	buf = new_buf(ctx, KIB(8), &map);
	ok(tow_mem_register(ctx, map + 1, KIB(8) - 1, 0, &b));
	tow_prep_copy(&op, b, 0, a, 0, KIB(8) - 1);
	run_ok(ctx, &op);
	assert_int_equal(map[0], 0);
	assert_int_equal(map[1], 1);
	assert_int_equal(map[KIB(8) - 1], 1);
	ok(tow_mem_unregister(ctx, b));
	ok(tow_mem_unregister(ctx, a));
	tow_buf_destroy(buf);
	munmap(mem, KIB(64));
	tow_close(ctx);
}

static void all_handles(void **state)
{
	struct tow_ctx *ctx = open_ctx(1);
	static unsigned char seen[65536];
	unsigned char byte = 0;
	unsigned int n;
	uint32_t h, first = 0;
	struct tow_buf *buf;
	int fds, err = 0;

	(void)state;
	memset(seen, 0, sizeof(seen));
	for (n = 0; n < 65535; n++) {
		err = tow_mem_register(ctx, &byte, 1, 0, &h);
		if (err)
			break;
		assert_in_range(h, 1, 65535);
		assert_int_equal(seen[h]++, 0);
		if (!n)
			first = h;
	}
	if (err == -ENOMEM) {
		/* RLIMIT_MEMLOCK without CAP_IPC_LOCK */
		tow_close(ctx);
		skip();
	}
	assert_int_equal(n, 65535);
	fails(tow_mem_register(ctx, &byte, 1, 0, &h), ENOSPC);
	fds = count_dir("/proc/self/fd");
	fails(tow_buf_create(ctx, 1, 0, TOW_NODE_ANY, &buf), ENOSPC);
	assert_int_equal(count_dir("/proc/self/fd"), fds);
	ok(tow_mem_unregister(ctx, first));
	ok(tow_buf_create(ctx, 1, 0, TOW_NODE_ANY, &buf));
	assert_int_equal(tow_buf_handle(buf), first);
	tow_close(ctx);
}

/* When it returns, nobody uses the memory any more. */
static void unregister_waits(void **state)
{
	struct tow_ctx *ctx = open_ctx(32);
	unsigned int i, k;

	(void)state;
	for (i = 0; i < rounds(20); i++) {
		struct busy busy;

		busy_start(&busy, ctx, 8, MIB(1));
		ok(tow_mem_unregister(ctx, busy.handle));
		/* Who still reads it now, crashes. */
		busy_free(&busy);
		for (k = 0; k < busy.n; k++)
			assert_int_equal(tow_wait(ctx, busy.tokens[k],
						  1000000000, NULL), 0);
	}
	tow_close(ctx);
}

const struct CMUnitTest mem_tests[] = {
	cmocka_unit_test(unaligned),
	cmocka_unit_test(errors),
	cmocka_unit_test(kinds),
	cmocka_unit_test(all_handles),
	cmocka_unit_test(unregister_waits),
};
const size_t nr_mem_tests = ARRAY_LEN(mem_tests);

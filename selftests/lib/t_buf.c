// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Buffers: creation, rights, mapping, import. */
#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>

static bool all_zero(const unsigned char *p, size_t n)
{
	return !p[0] && !memcmp(p, p + 1, n - 1);
}

static void create(void **state)
{
	static const uint64_t lengths[] = {
		1, 4095, 4096, 4097, MIB(2) - 1, MIB(2), MIB(2) + 1, MIB(5),
	};
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct tow_ctx *ctx = open_ctx(4);
	unsigned int i;

	(void)state;
	for (i = 0; i < 2 * ARRAY_LEN(lengths); i++) {
		uint64_t want = lengths[i / 2];
		struct tow_buf *buf;
		unsigned char *map;

		ok(tow_buf_create(ctx, want, i & 1 ? TOW_BUF_SMALL_PAGES : 0,
				  i & 1 ? 0 : TOW_NODE_ANY, &buf));
		want = (want + page - 1) / page * page;
		assert_int_equal(tow_buf_length(buf), want);
		assert_int_equal(tow_buf_rights(buf),
				 TOW_RIGHT_READ | TOW_RIGHT_WRITE);
		assert_int_not_equal(tow_buf_handle(buf), 0);
		assert_true(fcntl(tow_buf_fd(buf), F_GETFD) & FD_CLOEXEC);

		ok(tow_buf_map(buf, (void **)&map));
		if (want >= MIB(2))
			assert_int_equal((uintptr_t)map % MIB(2), 0);
		assert_true(all_zero(map, want));
		memset(map, 0x5a, want);
		tow_buf_destroy(buf);
	}
	tow_buf_destroy(NULL);
	tow_close(ctx);
}

static void create_errors(void **state)
{
	struct tow_ctx *ctx = open_ctx(1);
	struct tow_buf *buf;
	int fds = count_dir("/proc/self/fd");

	(void)state;
	fails(tow_buf_create(NULL, 1, 0, TOW_NODE_ANY, &buf), EINVAL);
	fails(tow_buf_create(ctx, 1, 0, TOW_NODE_ANY, NULL), EINVAL);
	fails(tow_buf_create(ctx, 0, 0, TOW_NODE_ANY, &buf), EINVAL);
	fails(tow_buf_create(ctx, 1, 2, TOW_NODE_ANY, &buf), EINVAL);
	fails(tow_buf_create(ctx, 1, 0, -2, &buf), EINVAL);
	fails(tow_buf_create(ctx, 1, 0, 1000, &buf), EINVAL);
	fails(tow_buf_create(ctx, 1, 0, 1 << 30, &buf), EINVAL);
	fails(tow_buf_create(ctx, (1ull << 40) + 1, 0, TOW_NODE_ANY, &buf),
	      EOVERFLOW);
	fails(tow_buf_create(ctx, UINT64_MAX, 0, TOW_NODE_ANY, &buf),
	      EOVERFLOW);
	/* No machine that runs this has so much. */
	fails(tow_buf_create(ctx, 1ull << 40, 0, TOW_NODE_ANY, &buf), ENOMEM);
	assert_int_equal(count_dir("/proc/self/fd"), fds);
	tow_close(ctx);
}

static void map_counts(void **state)
{
	struct tow_ctx *ctx = open_ctx(1);
	struct tow_buf *buf = new_buf(ctx, MIB(4), NULL);
	unsigned char *a, *b;
	unsigned char resident;

	(void)state;
	fails(tow_buf_map(buf, NULL), EINVAL);
	fails(tow_buf_map(NULL, (void **)&a), EINVAL);
	fails(tow_buf_unmap(NULL), EINVAL);
	fails(tow_buf_unmap(buf), EINVAL);
	ok(tow_buf_map(buf, (void **)&a));
	ok(tow_buf_map(buf, (void **)&b));
	assert_ptr_equal(a, b);
	a[MIB(4) - 1] = 1;
	ok(tow_buf_unmap(buf));
	assert_int_equal(a[MIB(4) - 1], 1);
	ok(tow_buf_unmap(buf));
	assert_int_equal(mincore(a, 4096, &resident), -1);
	assert_int_equal(errno, ENOMEM);
	fails(tow_buf_unmap(buf), EINVAL);
	/* The contents are the buffer's, not the mapping's. */
	ok(tow_buf_map(buf, (void **)&a));
	assert_int_equal(a[MIB(4) - 1], 1);
	tow_buf_destroy(buf);
	assert_int_equal(mincore(a, 4096, &resident), -1);
	tow_close(ctx);
}

static uint64_t address_space(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu", &pages), 1);
	fclose(file);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* What the search for an aligned place takes, it gives back. */
static void map_leaves_nothing(void **state)
{
	struct tow_ctx *ctx = open_ctx(1);
	struct tow_buf *buf = new_buf(ctx, MIB(2) + 4096, NULL);
	uint64_t before = address_space();
	unsigned int i;
	void *map;

	(void)state;
	for (i = 0; i < 100; i++) {
		ok(tow_buf_map(buf, &map));
		ok(tow_buf_unmap(buf));
	}
	/* The sanitizers reserve as they please. */
	if (!SANITIZED)
		assert_true(address_space() < before + MIB(16));
	tow_close(ctx);
}

static void derive(void **state)
{
	struct tow_ctx *ctx = open_ctx(4);
	unsigned char *map, *ro_map, *rw_map;
	struct tow_buf *buf, *ro, *rw;
	struct tow_op op;
	void *at;
	int fd, fd2;

	(void)state;
	buf = new_buf(ctx, KIB(64), &map);
	rnd_bytes(map, KIB(64));
	fails(tow_buf_derive(NULL, TOW_RIGHT_READ), EINVAL);
	fails(tow_buf_derive(buf, 0), EINVAL);
	fails(tow_buf_derive(buf, TOW_RIGHT_WRITE), EINVAL);
	fails(tow_buf_derive(buf, TOW_RIGHT_READ | 4), EINVAL);

	fd = ok(tow_buf_derive(buf, TOW_RIGHT_READ));
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_equal(at, MAP_FAILED);
	assert_int_equal(errno, EACCES);
	at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(mprotect(at, 4096, PROT_READ | PROT_WRITE), -1);
	assert_int_equal(errno, EACCES);
	munmap(at, 4096);

	ok(tow_buf_import(ctx, fd, &ro));
	assert_int_equal(tow_buf_rights(ro), TOW_RIGHT_READ);
	assert_int_equal(tow_buf_length(ro), KIB(64));
	assert_int_not_equal(tow_buf_handle(ro), tow_buf_handle(buf));
	ok(tow_buf_map(ro, (void **)&ro_map));
	assert_memory_equal(ro_map, map, KIB(64));
	assert_int_equal(mprotect(ro_map, 4096, PROT_READ | PROT_WRITE), -1);
	assert_int_equal(errno, EACCES);

	/* A source, never a destination or the place of a notification */
	tow_prep_copy(&op, tow_buf_handle(buf), 0, tow_buf_handle(ro),
		      KIB(32), KIB(32));
	run_ok(ctx, &op);
	tow_prep_copy(&op, tow_buf_handle(ro), 0, tow_buf_handle(buf), 0, 8);
	fails(tow_run(ctx, &op, NULL), EACCES);
	tow_prep_fill(&op, tow_buf_handle(ro), 0, 8, 0);
	fails(tow_run(ctx, &op, NULL), EACCES);
	tow_prep_nop(&op);
	tow_op_store(&op, tow_buf_handle(ro), 0, 1, 4);
	fails(tow_run(ctx, &op, NULL), EACCES);
	assert_memory_equal(ro_map, map, KIB(64));

	/* Rights do not grow. */
	fails(tow_buf_derive(ro, TOW_RIGHT_READ | TOW_RIGHT_WRITE), EACCES);
	fd2 = ok(tow_buf_derive(ro, TOW_RIGHT_READ));
	close(fd2);

	/* All of them: the same pages once more */
	fd2 = ok(tow_buf_derive(buf, TOW_RIGHT_READ | TOW_RIGHT_WRITE));
	ok(tow_buf_import(ctx, fd2, &rw));
	close(fd2);
	assert_int_equal(tow_buf_rights(rw), TOW_RIGHT_READ | TOW_RIGHT_WRITE);
	ok(tow_buf_map(rw, (void **)&rw_map));
	rw_map[77] ^= 0xff;
	assert_int_equal(map[77], rw_map[77]);
	assert_int_equal(ro_map[77], rw_map[77]);

	tow_buf_destroy(ro);
	tow_buf_destroy(rw);
	tow_buf_destroy(buf);
	close(fd);
	tow_close(ctx);
}

static void import_keeps(void **state)
{
	struct tow_ctx *a = open_ctx(4);
	struct tow_ctx *b = open_ctx(4);
	struct tow_buf *buf, *copy;
	unsigned char *map;
	struct tow_op op;
	int fd;

	(void)state;
	buf = new_buf(a, KIB(20), &map);
	map[KIB(20) - 1] = 0x42;
	fd = tow_buf_fd(buf);
	ok(tow_buf_import(b, fd, &copy));
	/* The caller's descriptor stays the caller's. */
	assert_int_not_equal(tow_buf_fd(copy), fd);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	assert_true(fcntl(tow_buf_fd(copy), F_GETFD) & FD_CLOEXEC);
	tow_buf_destroy(buf);
	tow_close(a);
	assert_int_equal(fcntl(fd, F_GETFD), -1);

	ok(tow_buf_map(copy, (void **)&map));
	assert_int_equal(map[KIB(20) - 1], 0x42);
	tow_prep_fill(&op, tow_buf_handle(copy), 0, KIB(20), ~0ull);
	run_ok(b, &op);
	assert_int_equal(map[KIB(20) - 1], 0xff);
	tow_buf_destroy(copy);
	tow_close(b);
}

static void import_errors(void **state)
{
	struct tow_ctx *ctx = open_ctx(1);
	char name[] = "/tmp/tow-test-XXXXXX";
	struct tow_buf *buf;
	int pipes[2], fd;
	int fds = count_dir("/proc/self/fd");

	(void)state;
	fails(tow_buf_import(ctx, -1, &buf), EBADF);
	fails(tow_buf_import(ctx, 1 << 20, &buf), EBADF);
	fails(tow_buf_import(ctx, 0, NULL), EINVAL);
	fails(tow_buf_import(NULL, 0, &buf), EINVAL);
	assert_int_equal(pipe(pipes), 0);
	fails(tow_buf_import(ctx, pipes[0], &buf), EINVAL);
	close(pipes[0]);
	close(pipes[1]);
	fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
	fails(tow_buf_import(ctx, fd, &buf), EINVAL);
	close(fd);
	fd = mkstemp(name);
	assert_int_equal(ftruncate(fd, 4096), 0);
	fails(tow_buf_import(ctx, fd, &buf), EINVAL);
	close(fd);
	unlink(name);
	/* A memory file that can shrink under a copy */
	fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, 4096), 0);
	fails(tow_buf_import(ctx, fd, &buf), EINVAL);
	close(fd);
	assert_int_equal(count_dir("/proc/self/fd"), fds);
	tow_close(ctx);
}

static void many(void **state)
{
	enum { N = 200 };
	struct tow_ctx *ctx = open_ctx(4);
	struct tow_buf *bufs[N];
	uint32_t *map;
	unsigned int i;

	(void)state;
	for (i = 0; i < N; i++) {
		bufs[i] = new_buf(ctx, 4096, &map);
		*map = i;
	}
	for (i = 0; i < N; i++) {
		struct tow_op op;

		tow_prep_copy(&op, tow_buf_handle(bufs[i]), 4,
			      tow_buf_handle(bufs[(i + 1) % N]), 0, 4);
		run_ok(ctx, &op);
		ok(tow_buf_map(bufs[i], (void **)&map));
		assert_int_equal(map[0], i);
		assert_int_equal(map[1], (i + 1) % N);
	}
	/* Some by hand, in any order, the rest by tow_close(). */
	for (i = 0; i < N; i += 3)
		tow_buf_destroy(bufs[i]);
	for (i = 1; i < N; i += 6)
		tow_buf_destroy(bufs[i]);
	tow_close(ctx);
}

const struct CMUnitTest buf_tests[] = {
	cmocka_unit_test(create),
	cmocka_unit_test(create_errors),
	cmocka_unit_test(map_counts),
	cmocka_unit_test(map_leaves_nothing),
	cmocka_unit_test(derive),
	cmocka_unit_test(import_keeps),
	cmocka_unit_test(import_errors),
	cmocka_unit_test(many),
};
const size_t nr_buf_tests = ARRAY_LEN(buf_tests);

// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * tow-user-test: what only the user provider has, and CRC-32C against its
 * published vectors. Linked with the objects of the library, for inner names.
 */
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "crc32c.h"
#include "provider.h"

/* ---- CRC-32C ---- */

typedef uint32_t crc_fn(uint32_t crc, const void *data, size_t len);

static void vectors(crc_fn *crc)
{
	unsigned char data[32];
	unsigned int i;

	/* RFC 3720, appendix B.4 */
	memset(data, 0, sizeof(data));
	assert_int_equal(crc(0, data, 32), 0x8a9136aa);
	memset(data, 0xff, sizeof(data));
	assert_int_equal(crc(0, data, 32), 0x62a8ab43);
	for (i = 0; i < 32; i++)
		data[i] = (unsigned char)i;
	assert_int_equal(crc(0, data, 32), 0x46dd794e);
	for (i = 0; i < 32; i++)
		data[i] = (unsigned char)(31 - i);
	assert_int_equal(crc(0, data, 32), 0x113fdb5c);
	assert_int_equal(crc(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc(0, data, 0), 0);
	assert_int_equal(crc(0x12345678, data, 0), 0x12345678);
}

static void crc_vectors(void **state)
{
	(void)state;
	vectors(towi_crc32c);
	vectors(towi_crc32c_table);
	vectors(model_crc32c);
}

static void crc_agree(void **state)
{
	static unsigned char data[5000];
	unsigned int i;

	(void)state;
	rnd_bytes(data, sizeof(data));
	for (i = 0; i < 2000; i++) {
		size_t off = rnd_below(64), len = rnd_below(4900);
		uint32_t seed = (uint32_t)rnd();
		uint32_t want = model_crc32c(seed, data + off, len);

		assert_int_equal(towi_crc32c(seed, data + off, len), want);
		assert_int_equal(towi_crc32c_table(seed, data + off, len),
				 want);
	}
}

static void crc_combine(void **state)
{
	static unsigned char data[5000];
	unsigned int i;
	uint32_t a, zeros = 0;
	uint64_t len;

	(void)state;
	rnd_bytes(data, sizeof(data));
	for (i = 0; i < 500; i++) {
		size_t cut = rnd_below(5000);
		uint32_t head = model_crc32c(0, data, cut);
		uint32_t tail = model_crc32c(0, data + cut, 5000 - cut);

		assert_int_equal(tow_crc32c_combine(head, tail, 5000 - cut),
				 model_crc32c(0, data, 5000));
	}
	a = (uint32_t)rnd();
	assert_int_equal(tow_crc32c_combine(a, 0, 0), a);
	assert_int_equal(tow_crc32c_combine(0, a, 12345), a);

	/* Lengths that no test can feed: doubling 1 zero byte 40 times. */
	data[0] = 0;
	zeros = model_crc32c(0, data, 1);
	a = model_crc32c(0, "x", 1);
	for (len = 1; len < 1ull << 40; len *= 2) {
		uint32_t once = tow_crc32c_combine(a, zeros, len);
		uint32_t twice = tow_crc32c_combine(once, zeros, len);

		zeros = tow_crc32c_combine(zeros, zeros, len);
		assert_int_equal(twice, tow_crc32c_combine(a, zeros, 2 * len));
	}
}

/* ---- memory files ---- */

static int new_memfd(off_t length, unsigned int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, length), 0);
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void seals(void **state)
{
	struct tow_ctx *ctx = open_ctx(4);
	struct tow_buf *buf;
	struct stat st;
	int fd, got;

	(void)state;
	buf = new_buf(ctx, 5000, NULL);
	got = fcntl(tow_buf_fd(buf), F_GET_SEALS);
	assert_int_equal(got & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
			 F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	assert_int_equal(ftruncate(tow_buf_fd(buf), 4096), -1);
	assert_int_equal(ftruncate(tow_buf_fd(buf), 65536), -1);
	/* All its memory is there, so that no access can fail. */
	assert_int_equal(fstat(tow_buf_fd(buf), &st), 0);
	assert_int_equal(st.st_blocks * 512, st.st_size);
	assert_int_equal(st.st_mode & 0777, 0444);
	tow_buf_destroy(buf);

	/* Files of others: only such as cannot shrink */
	fd = new_memfd(10000, 0);
	fails(tow_buf_import(ctx, fd, &buf), EINVAL);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
	fails(tow_buf_import(ctx, fd, &buf), EINVAL);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	ok(tow_buf_import(ctx, fd, &buf));
	assert_int_equal(tow_buf_length(buf), 10000);
	close(fd);
	tow_buf_destroy(buf);
	fd = new_memfd(0, F_SEAL_SHRINK);
	fails(tow_buf_import(ctx, fd, &buf), EINVAL);
	close(fd);
	/* Claims a right that it has not. */
	fd = new_memfd(4096, F_SEAL_SHRINK | F_SEAL_WRITE);
	fails(tow_buf_import(ctx, fd, &buf), EINVAL);
	close(fd);
	tow_close(ctx);
}

/* A read-only descriptor does not help another user to a writable one. */
static void reopen(void **state)
{
	struct tow_ctx *ctx = open_ctx(4);
	struct tow_buf *buf = new_buf(ctx, 4096, NULL);
	int ro = ok(tow_buf_derive(buf, TOW_RIGHT_READ));
	char path[32];
	pid_t pid;

	(void)state;
	if (geteuid()) {
		close(ro);
		tow_close(ctx);
		skip();
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ro);
	pid = start_child();
	if (!pid) {
		if (setresuid(65534, 65534, 65534))
			_exit(2);
		/* Dumpable again, or /proc/self/fd belongs to root. */
		_exit(open(path, O_RDWR) >= 0 || errno != EACCES);
	}
	assert_int_equal(wait_child(pid), 0);
	close(ro);
	tow_close(ctx);
}

/*
 * A file that grew between two imports is mapped with two lengths: a copy that
 * overlaps itself through both must still be memmove(3).
 */
static void grown(void **state)
{
	struct tow_ctx *ctx = open_ctx(4);
	int fd = new_memfd(MIB(1), F_SEAL_SHRINK);
	unsigned char *map, *want = malloc(MIB(2));
	struct tow_buf *small, *large;
	static const uint64_t shift[] = { 1, 100, 4096, KIB(100) };
	unsigned int i;

	(void)state;
	ok(tow_buf_import(ctx, fd, &small));
	assert_int_equal(ftruncate(fd, MIB(2)), 0);
	ok(tow_buf_import(ctx, fd, &large));
	ok(tow_buf_map(large, (void **)&map));
	rnd_bytes(map, MIB(2));
	memcpy(want, map, MIB(2));
	for (i = 0; i < 2 * ARRAY_LEN(shift); i++) {
		uint64_t s = shift[i / 2], len = KIB(200);
		uint64_t to = MIB(1) - len;
		struct tow_op op;

		/* From beyond the end of what the destination has mapped */
		tow_prep_copy(&op, tow_buf_handle(small), to,
			      tow_buf_handle(large), to + s, len);
		if (i & 1)
			op.opcode = TOW_OP_COPY_CRC;
		memmove(want + to, want + to + s, len);
		if (i & 1)
			assert_int_equal(run_ok(ctx, &op).crc,
					 model_crc32c(0, want + to, len));
		else
			run_ok(ctx, &op);
		assert_memory_equal(map, want, MIB(2));

		/* And to there */
		tow_prep_copy(&op, tow_buf_handle(large), to + s,
			      tow_buf_handle(small), to, len);
		memmove(want + to + s, want + to, len);
		run_ok(ctx, &op);
		assert_memory_equal(map, want, MIB(2));
	}
	free(want);
	close(fd);
	tow_close(ctx);
}

static void ten_thousand(void **state)
{
	enum { N = 10000 };
	struct tow_buf **bufs;
	struct rlimit lim;
	struct tow_ctx *ctx;
	struct tow_op op;
	uint32_t *map;
	unsigned int i, n = rounds(N);

	(void)state;
	getrlimit(RLIMIT_NOFILE, &lim);
	lim.rlim_cur = lim.rlim_max;
	setrlimit(RLIMIT_NOFILE, &lim);
	if (lim.rlim_cur < N + 100)
		skip();
	ctx = open_ctx(4);
	bufs = calloc(N, sizeof(*bufs));
	for (i = 0; i < n; i++) {
		bufs[i] = new_buf(ctx, 4096, NULL);
		tow_prep_fill(&op, tow_buf_handle(bufs[i]), 0, 4, i);
		run_ok(ctx, &op);
	}
	for (i = 0; i < n; i += 97) {
		ok(tow_buf_map(bufs[i], (void **)&map));
		assert_int_equal(*map, i);
		tow_buf_destroy(bufs[i]);
	}
	tow_close(ctx);
	free(bufs);
}

/* No descriptor left: an error, and nothing half made. */
static uint64_t mem_available(void)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			break;
	fclose(f);
	assert_true(kib > 0);
	return kib << 10;
}

/* More than is free is refused, and nothing was taken for it. */
static void more_than_available(void **state)
{
	struct tow_ctx *ctx = open_ctx(4);
	uint64_t before = mem_available();
	struct tow_buf *buf;

	(void)state;
	fails(tow_buf_create(ctx, before + (1ull << 30), 0, TOW_NODE_ANY, &buf),
	      ENOMEM);
	assert_true(mem_available() > before / 2);
	tow_close(ctx);
}

static void no_descriptors(void **state)
{
	struct tow_ctx *ctx = open_ctx(4);
	struct rlimit lim, low;
	struct tow_buf *buf, *have = new_buf(ctx, 1, NULL);
	uint32_t handle;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &lim);
	low = lim;
	low.rlim_cur = 3;
	setrlimit(RLIMIT_NOFILE, &low);
	fails(tow_buf_create(ctx, 1, 0, TOW_NODE_ANY, &buf), EMFILE);
	fails(tow_buf_import(ctx, tow_buf_fd(have), &buf), EMFILE);
	fails(tow_buf_derive(have, TOW_RIGHT_READ), EMFILE);
	fails(tow_buf_derive(have, TOW_RIGHT_READ | TOW_RIGHT_WRITE), EMFILE);
	fails(tow_fd(ctx), EMFILE);
	setrlimit(RLIMIT_NOFILE, &lim);
	/* No handle went with them. */
	handle = tow_buf_handle(have);
	ok(tow_buf_create(ctx, 1, 0, TOW_NODE_ANY, &buf));
	assert_int_equal(tow_buf_handle(buf), handle + 1);
	tow_close(ctx);
}

/* ---- the provider below the library ---- */

static struct towi_provider *open_provider(void)
{
	struct tow_open_opts opts = {
		.size = sizeof(opts),
		.entries = 4,
		.workers = 1,
		.inline_max = 1,
	};
	struct towi_provider *p;

	ok(towi_user_open(&opts, &p));
	return p;
}

static void slots(void **state)
{
	struct towi_provider *p = open_provider();
	struct towpin_op op = { 0 };
	uint32_t accepted, done;
	uint32_t list[5] = { 0 };
	unsigned int i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_equal(p->records[i].status, TOWPIN_ST_UNUSED);
	op.slot = 4;
	fails(p->ops->submit(p, &op, 1, &accepted), EINVAL);
	assert_int_equal(accepted, 0);
	op.slot = 3;
	fails(p->ops->submit(p, &op, 0, &accepted), EINVAL);
	op.notify = 1;
	fails(p->ops->submit(p, &op, 1, &accepted), EINVAL);
	op.notify = 0;
	op.flags = 8;
	fails(p->ops->submit(p, &op, 1, &accepted), EINVAL);
	op.flags = TOWPIN_F_STORE32 | TOWPIN_F_STORE64;
	fails(p->ops->submit(p, &op, 1, &accepted), EINVAL);
	op.flags = TOWPIN_F_STORE32;
	op.notify_value = 1ull << 32;
	fails(p->ops->submit(p, &op, 1, &accepted), EINVAL);
	op.flags = 0;
	op.notify_value = 0;
	op.eventfd = 1;
	fails(p->ops->submit(p, &op, 1, &accepted), EINVAL);
	op.flags = TOWPIN_F_EVENTFD;
	op.eventfd = 4096;
	fails(p->ops->submit(p, &op, 1, &accepted), EINVAL);
	op.flags = 0;
	op.eventfd = 0;
	op.opcode = TOWPIN_OP_FILL;
	op.len = 8;
	op.dst = 1;
	/* A refused entry leaves the record as it was. */
	fails(p->ops->submit(p, &op, 1, &accepted), ENOENT);
	assert_int_equal(p->records[3].status, TOWPIN_ST_UNUSED);

	fails(p->ops->wait(p, list, 5, 1, 0, &done), EINVAL);
	fails(p->ops->wait(p, list, 1, 0, 0, &done), EINVAL);
	fails(p->ops->wait(p, list, 1, 2, 0, &done), EINVAL);
	list[0] = 4;
	fails(p->ops->wait(p, list, 1, 1, 0, &done), EINVAL);
	fails(p->ops->wait(p, NULL, 0, 5, 0, &done), EINVAL);
	ok(p->ops->wait(p, NULL, 0, 4, 0, &done));
	assert_int_equal(done, 4);
	p->ops->close(p, false);
}

static _Atomic bool refusing;

static void *refused(void *arg)
{
	struct towi_provider *p = arg;
	struct towpin_op op = {
		.opcode = TOWPIN_OP_FILL, .dst = 4711, .len = 8,
	};
	uint32_t accepted;
	int i, wrong = 0;

	for (i = 0; i < 100000; i++)
		wrong += p->ops->submit(p, &op, 1, &accepted) != -ENOENT;
	atomic_store(&refusing, false);
	return wrong ? arg : NULL;
}

/*
 * A refused entry never shows in its record: who waits for the slot would go to
 * sleep over it, and nothing would wake it.
 */
static void refused_unseen(void **state)
{
	struct towi_provider *p = open_provider();
	unsigned int pending = 0;
	pthread_t thread;
	void *wrong;

	(void)state;
	atomic_store(&refusing, true);
	assert_int_equal(pthread_create(&thread, NULL, refused, p), 0);
	while (atomic_load(&refusing))
		pending += __atomic_load_n(&p->records[0].status,
					   __ATOMIC_ACQUIRE) ==
			   TOWPIN_ST_PENDING;
	pthread_join(thread, &wrong);
	assert_null(wrong);
	assert_int_equal(pending, 0);
	p->ops->close(p, false);
}

static void slot_in_flight(void **state)
{
	struct towi_provider *p = open_provider();
	size_t length = MIB(32);
	void *mem = malloc(length);
	struct towpin_op op = { .opcode = TOWPIN_OP_FILL, .len = length };
	uint32_t accepted, done;
	bool seen = false;
	unsigned int i;

	(void)state;
	ok(p->ops->register_mem(p, (uintptr_t)mem, length, 0, &op.dst));
	for (i = 0; i < 20 && !seen; i++) {
		uint32_t two[2] = { 0, 1 };

		ok(p->ops->submit(p, &op, 1, &accepted));
		if (p->ops->submit(p, &op, 1, &accepted) == -EAGAIN &&
		    p->ops->detach(p, op.dst, TOWPIN_DETACH_NOWAIT) == -EBUSY) {
			/* One of two is done: enough for 1, not for 2. */
			ok(p->ops->wait(p, two, 2, 1, 0, &done));
			seen = p->ops->wait(p, two, 2, 2, 0, &done) == -ETIME &&
			       done == 1;
		}
		ok(p->ops->wait(p, two, 2, 2, TOWI_DEADLINE_NEVER, &done));
	}
	assert_true(seen);
	fails(p->ops->detach(p, op.dst, 2), EINVAL);
	ok(p->ops->detach(p, op.dst, TOWPIN_DETACH_NOWAIT));
	p->ops->close(p, false);
	free(mem);
}

static void buf_info(void **state)
{
	struct towi_provider *p = open_provider();
	struct towpin_buf_info info;
	int pipes[2];
	int fd, ro;

	(void)state;
	fd = ok(p->ops->buf_create(p, 5000, 0, TOWPIN_NODE_ANY));
	ok(p->ops->buf_info(p, fd, &info));
	assert_int_equal(info.length, 8192);
	assert_int_equal(info.rights, 3);
	ro = ok(p->ops->buf_derive(p, fd, 1));
	ok(p->ops->buf_info(p, ro, &info));
	assert_int_equal(info.length, 8192);
	assert_int_equal(info.rights, 1);
	assert_int_equal(pipe(pipes), 0);
	fails(p->ops->buf_info(p, pipes[0], &info), EINVAL);
	fails(p->ops->buf_derive(p, pipes[0], 1), EINVAL);
	fails(p->ops->buf_info(p, -1, &info), EBADF);
	fails(p->ops->buf_derive(p, -1, 1), EBADF);
	close(pipes[0]);
	close(pipes[1]);
	close(fd);
	close(ro);
	p->ops->close(p, false);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc_vectors),
		cmocka_unit_test(crc_agree),
		cmocka_unit_test(crc_combine),
		cmocka_unit_test(seals),
		cmocka_unit_test(reopen),
		cmocka_unit_test(grown),
		cmocka_unit_test(ten_thousand),
		cmocka_unit_test(more_than_available),
		cmocka_unit_test(no_descriptors),
		cmocka_unit_test(slots),
		cmocka_unit_test(refused_unseen),
		cmocka_unit_test(slot_in_flight),
		cmocka_unit_test(buf_info),
	};
	const char *timeout = getenv("TOW_TEST_TIMEOUT");

	setvbuf(stdout, NULL, _IOLBF, 0);
	setenv("TOW_PROVIDER", "user", 1);
	alarm(timeout ? (unsigned int)atoi(timeout) : 120);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	rnd();
	return !!cmocka_run_group_tests(tests, NULL, NULL);
}

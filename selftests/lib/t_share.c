// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Other processes: descriptors that travel, forked children, exec. */
#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define LENGTH	(MIB(2) + 4096)

/* In a child: leave with the number of the line that is not as it should be. */
#define must(cond)						\
	do {							\
		if (!(cond)) {					\
			fprintf(stderr, "# %s:%d: %s\n",	\
				__FILE__, __LINE__, #cond);	\
			_exit(1);				\
		}						\
	} while (0)

static int send_fd(int sock, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	char byte = 'x';
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(sock, &msg, 0) == 1 ? 0 : -errno;
}

static int recv_fd(int sock)
{
	char control[CMSG_SPACE(sizeof(int))];
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	int fd;

	if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static struct tow_ctx *child_ctx(void)
{
	struct tow_ctx *ctx = NULL;

	must(!tow_open(&ctx, NULL));
	return ctx;
}

/*
 * The other process knows the sum of what it is to find; it answers by an
 * operation in its own context, and must not get further than its rights.
 */
static void peer(int sock, uint32_t crc)
{
	struct tow_buf *rw = NULL, *ro = NULL;
	struct tow_ctx *ctx;
	struct tow_result res;
	struct tow_op op;
	unsigned char *map;
	int fd;

	ctx = child_ctx();
	fd = recv_fd(sock);
	must(fd >= 0);
	must(!tow_buf_import(ctx, fd, &rw));
	close(fd);
	fd = recv_fd(sock);
	must(fd >= 0);
	must(!tow_buf_import(ctx, fd, &ro));
	close(fd);
	must(tow_buf_length(rw) == LENGTH);
	must(tow_buf_rights(rw) == (TOW_RIGHT_READ | TOW_RIGHT_WRITE));
	must(tow_buf_rights(ro) == TOW_RIGHT_READ);

	tow_prep_crc32c(&op, tow_buf_handle(rw), 0, LENGTH, 0);
	must(!tow_run(ctx, &op, &res));
	must(res.status == 0 && res.crc == crc);
	must(!tow_buf_map(ro, (void **)&map));
	must(model_crc32c(0, map, LENGTH) == crc);

	tow_prep_fill(&op, tow_buf_handle(ro), 0, 4096, 0);
	must(tow_run(ctx, &op, &res) == -EACCES);
	tow_prep_fill(&op, tow_buf_handle(rw), LENGTH - 4096, 4096,
		      0x1122334455667788);
	must(!tow_run(ctx, &op, &res) && !res.status);
	tow_close(ctx);
	_exit(0);
}

static void pass_fd(void **state)
{
	struct tow_ctx *ctx = open_ctx(4);
	struct tow_buf *buf;
	unsigned char *map;
	uint64_t word;
	uint32_t crc;
	int sock[2], ro;
	pid_t pid;

	(void)state;
	if (!CHILD_THREADS) {
		tow_close(ctx);
		skip();
	}
	buf = new_buf(ctx, LENGTH, &map);
	rnd_bytes(map, LENGTH);
	crc = model_crc32c(0, map, LENGTH);
	ro = ok(tow_buf_derive(buf, TOW_RIGHT_READ));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				    sock), 0);
	pid = start_child();
	if (!pid)
		peer(sock[1], crc);
	close(sock[1]);
	ok(send_fd(sock[0], tow_buf_fd(buf)));
	ok(send_fd(sock[0], ro));
	assert_int_equal(wait_child(pid), 0);
	memcpy(&word, map + LENGTH - 8, 8);
	assert_int_equal(word, 0x1122334455667788);
	close(sock[0]);
	close(ro);
	tow_buf_destroy(buf);
	tow_close(ctx);
}

/* A program without access to the module, given a buffer of one that has it. */
static void user_gets_dmabuf(void **state)
{
	struct tow_open_opts opts = {
		.size = sizeof(opts),
		.provider = TOW_PROVIDER_USER,
		.inline_max = 4096,
	};
	struct tow_ctx *ctx = open_ctx(4), *user;
	struct tow_buf *buf, *rw, *rw2, *ro;
	struct tow_result res;
	struct tow_op op;
	unsigned char *map, *want;
	int fd;

	(void)state;
	if (!on_kmod(ctx)) {
		tow_close(ctx);
		skip();
	}
	ok(tow_open(&user, &opts));
	buf = new_buf(ctx, LENGTH, &map);
	rnd_bytes(map, LENGTH);
	want = malloc(LENGTH);
	memcpy(want, map, LENGTH);
	ok(tow_buf_import(user, tow_buf_fd(buf), &rw));
	ok(tow_buf_import(user, tow_buf_fd(buf), &rw2));
	fd = ok(tow_buf_derive(buf, TOW_RIGHT_READ));
	ok(tow_buf_import(user, fd, &ro));
	close(fd);
	assert_int_equal(tow_buf_length(rw), LENGTH);
	assert_int_equal(tow_buf_rights(rw), TOW_RIGHT_READ | TOW_RIGHT_WRITE);
	assert_int_equal(tow_buf_rights(ro), TOW_RIGHT_READ);
	fails(tow_buf_derive(rw, TOW_RIGHT_READ), EINVAL);

	/* Both name the same memory, and the copy overlaps itself. */
	tow_prep_copy_crc(&op, tow_buf_handle(rw), 100, tow_buf_handle(rw2), 0,
			  MIB(2), 0);
	tow_op_store(&op, tow_buf_handle(rw), MIB(2) + 1024, 7, 8);
	res = run_ok(user, &op);
	memmove(want + 100, want, MIB(2));
	memset(want + MIB(2) + 1024, 0, 8);
	want[MIB(2) + 1024] = 7;
	assert_int_equal(res.crc, model_crc32c(0, want + 100, MIB(2)));
	assert_memory_equal(map, want, LENGTH);
	tow_prep_fill(&op, tow_buf_handle(ro), 0, 8, 0);
	fails(tow_run(user, &op, NULL), EACCES);
	tow_prep_compare(&op, tow_buf_handle(ro), 0, tow_buf_handle(rw), 0,
			 LENGTH);
	res = run_ok(user, &op);
	assert_int_equal(res.differs, 0);
	assert_int_equal(res.bytes, LENGTH);
	free(want);
	tow_close(user);
	tow_close(ctx);
}

static void forked_calls(struct tow_ctx *ctx, struct tow_buf *buf,
			 unsigned char *map, tow_token token)
{
	struct tow_info info = { .size = sizeof(info) };
	struct tow_result res;
	struct tow_buf *other;
	struct tow_ctx *own;
	struct tow_op op;
	uint32_t handle;
	void *addr;

	tow_prep_nop(&op);
	must(tow_info(ctx, &info) == -EPERM);
	must(tow_buf_create(ctx, 1, 0, TOW_NODE_ANY, &other) == -EPERM);
	must(tow_buf_import(ctx, tow_buf_fd(buf), &other) == -EPERM);
	must(tow_buf_derive(buf, TOW_RIGHT_READ) == -EPERM);
	must(tow_buf_map(buf, &addr) == -EPERM);
	must(tow_buf_unmap(buf) == -EPERM);
	must(tow_mem_register(ctx, &op, 1, 0, &handle) == -EPERM);
	must(tow_mem_unregister(ctx, 1) == -EPERM);
	must(tow_submit(ctx, &op, 1, &token) == -EPERM);
	must(tow_test(ctx, token, &res) == -EPERM);
	must(tow_wait(ctx, token, 0, &res) == -EPERM);
	must(tow_wait_any(ctx, &token, 1, 0, &res) == -EPERM);
	must(tow_run(ctx, &op, &res) == -EPERM);
	must(tow_fd(ctx) == -EPERM);
	must(tow_eventfd_add(ctx, 0) == -EPERM);
	must(tow_eventfd_del(ctx, 0) == -EPERM);
	tow_buf_destroy(buf);

	/* What was mapped is shared on, and the descriptor can be used. */
	must(map[5] == 0x55);
	map[6] = 0x66;
	if (!CHILD_THREADS) {
		memset(map + 4096, 0x77, 8);
		tow_close(ctx);
		_exit(0);
	}
	own = child_ctx();
	must(!tow_buf_import(own, tow_buf_fd(buf), &other));
	tow_prep_fill(&op, tow_buf_handle(other), 4096, 8,
		      0x7777777777777777);
	must(!tow_run(own, &op, &res) && !res.status);
	tow_close(own);
	tow_close(ctx);
	_exit(0);
}

static void forked(void **state)
{
	struct tow_ctx *ctx = open_ctx(16);
	struct tow_buf *buf;
	struct tow_op op;
	struct busy busy;
	unsigned char *map;
	tow_token token;
	unsigned int i;
	pid_t pid;

	(void)state;
	buf = new_buf(ctx, KIB(8), &map);
	ok(tow_fd(ctx));
	map[5] = 0x55;
	tow_prep_nop(&op);
	ok(tow_submit(ctx, &op, 1, &token));
	for (i = 0; i < 3; i++) {
		/* Workers are in the middle of something meanwhile. */
		busy_start(&busy, ctx, 8, MIB(1));
		pid = start_child();
		if (!pid)
			forked_calls(ctx, buf, map, token);
		busy_reap(&busy);
		assert_int_equal(wait_child(pid), 0);
		assert_int_equal(map[6], 0x66);
		assert_int_equal(map[4096], 0x77);
		map[6] = 0;
		map[4096] = 0;
	}
	/* The child's end has changed nothing here. */
	ok(tow_test(ctx, token, NULL));
	tow_prep_fill(&op, tow_buf_handle(buf), 0, KIB(8), 0);
	run_ok(ctx, &op);
	assert_int_equal(map[5], 0);
	tow_buf_destroy(buf);
	tow_close(ctx);
}

/* A child that goes without tow_close() must not matter either. */
static void forked_exit(void **state)
{
	struct tow_ctx *ctx = open_ctx(16);
	struct tow_op op;
	pid_t pid;

	(void)state;
	pid = start_child();
	if (!pid)
		_exit(0);
	assert_int_equal(wait_child(pid), 0);
	tow_prep_nop(&op);
	run_ok(ctx, &op);
	tow_close(ctx);
}

static void cloexec(void **state)
{
	enum { FDS = 256 };
	bool former[FDS];
	struct tow_buf *buf, *other;
	struct tow_ctx *ctx;
	int fd, ro, n = 0;

	(void)state;
	for (fd = 0; fd < FDS; fd++)
		former[fd] = fcntl(fd, F_GETFD) >= 0;
	ctx = open_ctx(4);
	buf = new_buf(ctx, 4096, NULL);
	ro = ok(tow_buf_derive(buf, TOW_RIGHT_READ));
	ok(tow_buf_import(ctx, ro, &other));
	ok(tow_fd(ctx));
	for (fd = 0; fd < FDS; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (flags < 0 || former[fd])
			continue;
		n++;
		assert_true(flags & FD_CLOEXEC);
	}
	/* The buffer's, the derived one, the imported one, the context's */
	assert_true(n >= 4);
	close(ro);
	tow_close(ctx);
}

const struct CMUnitTest share_tests[] = {
	cmocka_unit_test(pass_fd),
	cmocka_unit_test(user_gets_dmabuf),
	cmocka_unit_test(forked),
	cmocka_unit_test(forked_exit),
	cmocka_unit_test(cloexec),
};
const size_t nr_share_tests = ARRAY_LEN(share_tests);

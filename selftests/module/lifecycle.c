// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ends: pages go when their last user is gone and never before an operation in
 * flight is done, however a process goes. Run alone: some tests unload the
 * module, from $TOWPIN_KO, and load it again.
 */
#include <sys/socket.h>
#include <sys/un.h>
#include "fixture.h"
#include "kselftest_harness.h"

#define BIG	MIB(96)

static int module_delete(void)
{
	return syscall(SYS_delete_module, "towpin", O_NONBLOCK) ? -errno : 0;
}

static int module_insert(void)
{
	const char *path = getenv("TOWPIN_KO");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1, ret;

	if (fd < 0)
		return -ENOENT;
	ret = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	close(fd);
	return ret;
}

FIXTURE(lifecycle) {
	int dev;
};

FIXTURE_SETUP(lifecycle)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
}

FIXTURE_TEARDOWN(lifecycle)
{
	close(self->dev);
	EXPECT_TRUE(counters_idle());
}

/* @nr large copies in flight, within one new buffer; its descriptor. */
static int start_copies(int dev, unsigned int nr)
{
	int fd = buf_create(dev, BIG), mem = mem_attach(dev, fd);
	unsigned int i;

	dev_setup(dev, 64, NULL);
	for (i = 0; i < nr; i++) {
		struct towpin_op op = {
			.opcode = TOWPIN_OP_COPY, .slot = i, .src = mem,
			.dst = mem, .dst_off = BIG / 2, .len = BIG / 2,
		};

		if (dev_submit(dev, &op, 1, NULL))
			return -1;
	}
	return fd;
}

TEST_F(lifecycle, close_with_operations_in_flight)
{
	int fd = start_copies(self->dev, 16);

	ASSERT_LE(0, fd);
	EXPECT_LT(0, counter("inflight"));
	close(fd);
	close(self->dev);
	/* The memory is still there for who is not yet done with it. */
	EXPECT_TRUE(counters_idle());
	self->dev = -1;
}

/* What a closed context had under way is stopped, and tells nobody that it is done. */
TEST_F(lifecycle, close_cancels)
{
	int words = buf_create(self->dev, 4096), fd, mem, notify, i;
	int before = 0, after = 0;
	volatile uint32_t *word;

	word = mmap(NULL, 4096, PROT_READ, MAP_SHARED, words, 0);
	ASSERT_NE(MAP_FAILED, word);
	fd = buf_create(self->dev, BIG);
	mem = mem_attach(self->dev, fd);
	notify = mem_attach(self->dev, words);
	ASSERT_EQ(0, dev_setup(self->dev, 64, NULL));
	for (i = 0; i < 32; i++) {
		struct towpin_op op = {
			.opcode = TOWPIN_OP_COPY, .slot = i, .src = mem,
			.dst = mem, .dst_off = BIG / 2, .len = BIG / 2,
			.flags = TOWPIN_F_STORE32, .notify = notify,
			.notify_off = i * 4, .notify_value = 1,
		};

		ASSERT_EQ(0, dev_submit(self->dev, &op, 1, NULL));
	}
	/* Time for the workers to begin, not to end: it is 3 GB in all. */
	usleep(30000);
	for (i = 0; i < 32; i++)
		before += word[i];
	close(fd);
	close(words);
	close(self->dev);
	self->dev = -1;
	while (counter("inflight"))
		usleep(1000);
	for (i = 0; i < 32; i++)
		after += word[i];
	/* Those within their last piece may still end. */
	EXPECT_GE(before + 2, after);
	EXPECT_GT(32, after);
	munmap((void *)word, 4096);
}

/* Killed at any moment between open and completion: nothing stays behind. */
TEST_F_TIMEOUT(lifecycle, killed_in_flight, 120)
{
	int round, status;

	close(self->dev);
	self->dev = -1;
	for (round = 0; round < 20; round++) {
		pid_t child = fork();

		if (!child) {
			char *p;
			int dev = dev_open(), fd;

			p = mmap(NULL, MIB(8), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			mem_register(dev, p, MIB(8), 0);
			fd = start_copies(dev, 8);
			mmap(NULL, BIG, PROT_READ, MAP_SHARED, fd, 0);
			dev_wait(dev, NULL, 0, 64, FOREVER, NULL);
			pause();
		}
		usleep(1000 + round * 3000);
		kill(child, SIGKILL);
		ASSERT_EQ(child, waitpid(child, &status, 0));
		ASSERT_TRUE(WIFSIGNALED(status));
	}
	EXPECT_TRUE(counters_idle());
}

TEST_F(lifecycle, fork_shares_the_context)
{
	int fd = start_copies(self->dev, 1), status;
	pid_t child = fork();

	if (!child) {
		uint32_t done = 0;

		/* Closing here ends nothing. */
		if (dev_wait(self->dev, NULL, 0, 64, FOREVER, &done))
			_exit(1);
		close(self->dev);
		close(fd);
		_exit(done == 64 ? 0 : 2);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(1, counter("contexts"));
	EXPECT_EQ(0, dev_wait_one(self->dev, 0));
	EXPECT_EQ(0, mem_detach(self->dev, 1, 0));
	close(fd);
}

TEST_F(lifecycle, exec_closes)
{
	int fd, status;
	pid_t child;

	close(self->dev);
	child = fork();
	if (!child) {
		self->dev = dev_open();
		start_copies(self->dev, 4);
		execl("/bin/sh", "sh", "-c",
		      "for f in /proc/$$/fd/*; do case $(readlink $f) in *towpin*|*dmabuf*) exit 1;; esac; done; exit 0",
		      NULL);
		_exit(100);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	self->dev = -1;
	EXPECT_TRUE(counters_idle());
	fd = dev_open();
	EXPECT_LE(0, fd);
	close(fd);
}

/* A descriptor in a socket nobody reads is freed with the socket. */
TEST_F(lifecycle, passed_and_dropped)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	int fd = buf_create(self->dev, MIB(2)), pair[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	ASSERT_EQ(1, sendmsg(pair[0], &msg, 0));
	close(fd);
	EXPECT_EQ(1, counter("buffers"));
	close(pair[0]);
	close(pair[1]);
	EXPECT_EQ(0, counter("buffers"));
}

TEST_F(lifecycle, mapping_keeps_the_context)
{
	uint64_t length;
	const volatile struct towpin_record *records;

	ASSERT_EQ(0, dev_setup(self->dev, 200, &length));
	records = dev_records(self->dev, length);
	ASSERT_NE(MAP_FAILED, records);
	close(self->dev);
	self->dev = -1;
	EXPECT_EQ(1, counter("contexts"));
	EXPECT_EQ(TOWPIN_ST_UNUSED, records[199].status);
	munmap((void *)records, length);
	EXPECT_EQ(0, counter("contexts"));
}

/* A registered range whose owner is gone, copied from by another process. */
TEST_F(lifecycle, registered_memory_outlives_its_process)
{
	int fd = buf_create(self->dev, MIB(8)), buf, status;
	struct towpin_op op = { .opcode = TOWPIN_OP_COPY, .len = MIB(8) };
	char *p = mmap(NULL, MIB(8), PROT_READ, MAP_SHARED, fd, 0);
	pid_t child;

	ASSERT_EQ(0, dev_setup(self->dev, 4, NULL));
	buf = mem_attach(self->dev, fd);
	child = fork();
	if (!child) {
		char *q = mmap(NULL, MIB(8), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		memset(q, 0x66, MIB(8));
		_exit(mem_register(self->dev, q, MIB(8), 0));
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	op.src = WEXITSTATUS(status);
	op.dst = buf;
	ASSERT_EQ(0, dev_submit(self->dev, &op, 1, NULL));
	ASSERT_EQ(0, dev_wait_one(self->dev, 0));
	EXPECT_EQ(0x66, p[0]);
	EXPECT_EQ(0x66, p[MIB(8) - 1]);
	munmap(p, MIB(8));
	close(fd);
}

TEST_F(lifecycle, module_stays_while_in_use)
{
	int fd = buf_create(self->dev, MIB(2));
	char *p;

	ASSERT_LE(0, fd);
	if (!getenv("TOWPIN_KO")) {
		close(fd);
		SKIP(return, "TOWPIN_KO is not set");
	}
	EXPECT_EQ(-EAGAIN, module_delete());
	close(self->dev);
	EXPECT_EQ(-EAGAIN, module_delete());
	p = mmap(NULL, MIB(2), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	EXPECT_EQ(-EAGAIN, module_delete());
	munmap(p, MIB(2));
	EXPECT_EQ(0, module_delete());
	EXPECT_EQ(-1, dev_open());
	ASSERT_EQ(0, module_insert());
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
}

/* Unloaded right after a close with work in flight: the unload waits for it. */
TEST_F_TIMEOUT(lifecycle, unload_drains_headless_contexts, 120)
{
	int round, fd;

	if (!getenv("TOWPIN_KO"))
		SKIP(return, "TOWPIN_KO is not set");
	for (round = 0; round < 10; round++) {
		fd = start_copies(self->dev, 32);
		ASSERT_LE(0, fd);
		close(fd);
		close(self->dev);
		/* The dma-buf's own reference goes with the last handle. */
		while (module_delete() == -EAGAIN)
			usleep(100);
		ASSERT_EQ(0, module_insert());
		self->dev = dev_open();
		ASSERT_LE(0, self->dev);
	}
}

TEST_HARNESS_MAIN

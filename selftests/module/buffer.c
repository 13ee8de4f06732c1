// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers: creation and its limits, rights, mappings of every kind, and what
 * the rest of the kernel can do with them.
 */
#include <grp.h>
#include <liburing.h>
#include <linux/dma-buf.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include "fixture.h"
#include "kselftest_harness.h"

#define NOBODY	65534

FIXTURE(buffer) {
	int dev;
};

FIXTURE_SETUP(buffer)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
}

FIXTURE_TEARDOWN(buffer)
{
	close(self->dev);
	EXPECT_TRUE(counters_idle());
}

static long minor_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

/* Of the mapping at @addr, in KiB, or -1. */
static long smaps_kib(const void *addr, const char *key)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[256], start[32];
	bool here = false;
	long kib = -1;

	snprintf(start, sizeof(start), "%lx-", (unsigned long)addr);
	while (f && fgets(line, sizeof(line), f)) {
		if (strchr(line, '-') && strchr(line, '-') < strchr(line, ' '))
			here = !strncmp(line, start, strlen(start));
		else if (here && !strncmp(line, key, strlen(key)))
			kib = atol(line + strlen(key) + 1);
	}
	if (f)
		fclose(f);
	return kib;
}

TEST_F(buffer, create_errors)
{
	struct towpin_buf_create arg = {
		.size = sizeof(arg), .length = 4096, .node = TOWPIN_NODE_ANY,
	};

	EXPECT_EQ(-EINVAL, buf_create(self->dev, 0));
	EXPECT_EQ(-EOVERFLOW, buf_create(self->dev, TOWPIN_MAX_LENGTH + 1));
	EXPECT_EQ(-EOVERFLOW, buf_create(self->dev, ~0ULL));
	EXPECT_EQ(-ENOMEM, buf_create(self->dev, TOWPIN_MAX_LENGTH));
	EXPECT_EQ(-EINVAL, buf_create_on(self->dev, 4096, 2, TOWPIN_NODE_ANY));
	EXPECT_EQ(-EINVAL, buf_create_on(self->dev, 4096, 0, 1U << 30));
	EXPECT_EQ(-EINVAL, buf_create_on(self->dev, 4096, 0, 63));
	arg.reserved = 1;
	EXPECT_EQ(-EINVAL, dev_ioctl(self->dev, TOWPIN_IOC_BUF_CREATE, &arg));
}

TEST_F(buffer, no_descriptor_left)
{
	struct rlimit was, none = { 0, 0 };

	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &was));
	none.rlim_max = was.rlim_max;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	EXPECT_EQ(-EMFILE, buf_create(self->dev, 4096));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &was));
	EXPECT_EQ(0, counter("buffers"));
}

TEST_F(buffer, zeroed_rounded_up_and_counted)
{
	struct towpin_buf_info info;
	int fd = buf_create(self->dev, 5000);
	size_t i, sum = 0;
	char *p;

	ASSERT_LE(0, fd);
	EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	EXPECT_EQ(8192, lseek(fd, 0, SEEK_END));
	ASSERT_EQ(0, buf_info(self->dev, fd, &info));
	EXPECT_EQ(8192, info.length);
	EXPECT_EQ(0, info.huge_bytes);
	EXPECT_EQ(TOWPIN_RIGHT_READ | TOWPIN_RIGHT_WRITE, info.rights);
	EXPECT_EQ(1, counter("buffers"));
	EXPECT_EQ(2, counter("buffer_pages"));

	p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	for (i = 0; i < 8192; i++)
		sum += p[i];
	EXPECT_EQ(0, sum);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 12288, PROT_READ, MAP_SHARED, fd, 0));
	EXPECT_EQ(EINVAL, errno);

	/* The mapping keeps the pages, not the descriptor. */
	close(fd);
	memset(p, 1, 8192);
	EXPECT_EQ(2, counter("buffer_pages"));
	munmap(p, 8192);
}

TEST_F(buffer, huge_pages_fault_in_whole)
{
	size_t length = 4 * HUGE, i;
	struct towpin_buf_info info;
	int fd = buf_create(self->dev, length);
	long faults;
	char *p;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, buf_info(self->dev, fd, &info));
	ASSERT_EQ(length, info.huge_bytes);
	p = map_aligned(fd, length);
	ASSERT_NE(MAP_FAILED, p);
	smaps_kib(p, "Rss:");		/* its own faults are not ours */
	faults = minor_faults();
	for (i = 0; i < length; i += 4096)
		p[i] = i >> 12;
	faults = minor_faults() - faults;
	EXPECT_GE(8, faults);
	EXPECT_EQ(length >> 10, smaps_kib(p, "FilePmdMapped:"));
	close(fd);

	fd = buf_create_on(self->dev, length, TOWPIN_BUF_SMALL_PAGES,
			   TOWPIN_NODE_ANY);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, buf_info(self->dev, fd, &info));
	EXPECT_EQ(0, info.huge_bytes);
	close(fd);
	munmap(p, length);
}

/* All that splits, moves, cleans or drops parts of a huge mapping. */
TEST_F(buffer, mapping_survives)
{
	size_t length = 2 * HUGE;
	int fd = buf_create(self->dev, length), status;
	char *p, *q;
	pid_t child;

	ASSERT_LE(0, fd);
	p = map_aligned(fd, length);
	ASSERT_NE(MAP_FAILED, p);
	memset(p, 7, length);

	child = fork();
	if (!child) {
		p[0] = 8;
		_exit(p[HUGE] == 7 ? 0 : 1);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(8, p[0]);

	ASSERT_EQ(0, mprotect(p + 4096, 4096, PROT_READ));
	EXPECT_EQ(7, p[4096]);
	ASSERT_EQ(0, munmap(p + MIB(1), 4096));
	EXPECT_EQ(7, p[MIB(1) + 4096]);
	ASSERT_EQ(0, mlock(p + HUGE, HUGE));
	ASSERT_EQ(0, munlock(p + HUGE, HUGE));
	madvise(p + HUGE, HUGE, MADV_COLD);
	madvise(p + HUGE, HUGE, MADV_PAGEOUT);
	madvise(p + HUGE, 4096 * 5, MADV_PAGEOUT);
	ASSERT_EQ(0, madvise(p + HUGE, HUGE, MADV_DONTNEED));
	madvise(p + HUGE, HUGE, MADV_FREE);
	madvise(p + HUGE, HUGE, MADV_REMOVE);
	EXPECT_EQ(7, p[HUGE + 4096]);
	EXPECT_EQ(7, p[length - 1]);

	q = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	ASSERT_NE(MAP_FAILED, q);
	q[HUGE] = 9;
	EXPECT_EQ(7, p[HUGE]);
	munmap(q, length);

	/* Grown past the end: a signal, not somebody's memory. */
	q = mremap(p + HUGE, HUGE, 2 * HUGE, MREMAP_MAYMOVE);
	ASSERT_NE(MAP_FAILED, q);
	EXPECT_EQ(7, q[HUGE - 1]);
	child = fork();
	if (!child)
		_exit(q[HUGE]);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	munmap(q, 2 * HUGE);
	munmap(p, HUGE);
	close(fd);
}

TEST_F(buffer, derive_takes_rights_away)
{
	int fd = buf_create(self->dev, HUGE), ro, rw, mem, plain;
	struct towpin_buf_info info;
	char *p, *q, path[64];

	ASSERT_LE(0, fd);
	p = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	p[0] = 1;

	EXPECT_EQ(-EBADF, buf_derive(self->dev, 999, TOWPIN_RIGHT_READ));
	EXPECT_EQ(-EINVAL, buf_derive(self->dev, self->dev, TOWPIN_RIGHT_READ));
	EXPECT_EQ(-EINVAL, buf_derive(self->dev, fd, 0));
	EXPECT_EQ(-EINVAL, buf_derive(self->dev, fd, TOWPIN_RIGHT_WRITE));
	EXPECT_EQ(-EINVAL, buf_derive(self->dev, fd, 4 | TOWPIN_RIGHT_READ));
	plain = open("/dev/null", O_RDWR);
	EXPECT_EQ(-EINVAL, buf_derive(self->dev, plain, TOWPIN_RIGHT_READ));
	EXPECT_EQ(-EINVAL, buf_info(self->dev, plain, &info));
	close(plain);

	ro = buf_derive(self->dev, fd, TOWPIN_RIGHT_READ);
	ASSERT_LE(0, ro);
	ASSERT_EQ(0, buf_info(self->dev, ro, &info));
	EXPECT_EQ(TOWPIN_RIGHT_READ, info.rights);
	EXPECT_EQ(-EACCES, buf_derive(self->dev, ro, TOWPIN_RIGHT_READ |
						     TOWPIN_RIGHT_WRITE));
	rw = buf_derive(self->dev, fd, TOWPIN_RIGHT_READ | TOWPIN_RIGHT_WRITE);
	ASSERT_LE(0, rw);
	close(rw);
	EXPECT_EQ(1, counter("buffers"));

	EXPECT_EQ(MAP_FAILED, mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
				   MAP_SHARED, ro, 0));
	EXPECT_EQ(EACCES, errno);
	q = mmap(NULL, HUGE, PROT_READ, MAP_SHARED, ro, 0);
	ASSERT_NE(MAP_FAILED, q);
	EXPECT_EQ(1, q[0]);
	EXPECT_EQ(-1, mprotect(q, HUGE, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	mem = open("/proc/self/mem", O_RDWR);
	EXPECT_GT(0, pwrite(mem, "x", 1, (uintptr_t)q));
	close(mem);
	EXPECT_EQ(1, p[0]);
	munmap(q, HUGE);

	q = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, ro, 0);
	ASSERT_NE(MAP_FAILED, q);
	q[0] = 2;
	EXPECT_EQ(1, p[0]);
	munmap(q, HUGE);

	/* A dma-buf cannot be opened anew with more rights. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ro);
	EXPECT_EQ(-1, open(path, O_RDWR));
	fcntl(ro, F_SETFL, O_RDWR);
	EXPECT_EQ(O_RDONLY, fcntl(ro, F_GETFL) & O_ACCMODE);

	close(fd);
	close(ro);
	munmap(p, HUGE);
}

TEST_F(buffer, dma_buf_sync)
{
	int fd = buf_create(self->dev, 4096);
	struct dma_buf_sync sync = { .flags = DMA_BUF_SYNC_START |
					      DMA_BUF_SYNC_RW };

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync));
	sync.flags = DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW;
	EXPECT_EQ(0, ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync));
	close(fd);
}

TEST_F(buffer, process_vm_and_vmsplice)
{
	int fd = buf_create(self->dev, HUGE), pipes[2];
	struct iovec local, remote;
	char *p, copy[8192];

	ASSERT_LE(0, fd);
	p = map_aligned(fd, HUGE);
	memset(p, 0x5a, HUGE);
	local = (struct iovec){ copy, sizeof(copy) };
	remote = (struct iovec){ p + 100, sizeof(copy) };
	EXPECT_EQ(8192, process_vm_readv(getpid(), &local, 1, &remote, 1, 0));
	EXPECT_EQ(0, memcmp(copy, p + 100, sizeof(copy)));
	memset(copy, 3, sizeof(copy));
	EXPECT_EQ(8192, process_vm_writev(getpid(), &local, 1, &remote, 1, 0));
	EXPECT_EQ(3, p[100]);

	/* A page that a pipe holds outlives the buffer. */
	ASSERT_EQ(0, pipe(pipes));
	remote = (struct iovec){ p, 4096 };
	ASSERT_EQ(4096, vmsplice(pipes[1], &remote, 1, 0));
	memset(copy, 0, sizeof(copy));
	memset(p, 0x11, 4096);
	munmap(p, HUGE);
	close(fd);
	EXPECT_EQ(0, counter("buffers"));
	EXPECT_EQ(4096, read(pipes[0], copy, 4096));
	EXPECT_EQ(0x11, copy[4095]);
	close(pipes[0]);
	close(pipes[1]);
}

TEST_F(buffer, direct_io)
{
	int disk = open("/dev/vda", O_RDWR | O_DIRECT);
	int fd = buf_create(self->dev, HUGE);
	char *p;

	ASSERT_LE(0, fd);
	if (disk < 0) {
		close(fd);
		SKIP(return, "no /dev/vda: run the guest with --disk");
	}
	p = map_aligned(fd, HUGE);
	memset(p, 0x42, KIB(256));
	EXPECT_EQ(KIB(256), pwrite(disk, p, KIB(256), 0));
	EXPECT_EQ(KIB(256), pread(disk, p + MIB(1), KIB(256), 0));
	EXPECT_EQ(0, memcmp(p, p + MIB(1), KIB(256)));
	munmap(p, HUGE);
	close(fd);
	close(disk);
}

TEST_F(buffer, io_uring_fixed)
{
	int disk = open("/dev/vda", O_RDWR | O_DIRECT);
	int fd = buf_create(self->dev, HUGE), ret;
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	struct iovec iov;
	char *p;

	ASSERT_LE(0, fd);
	if (disk < 0) {
		close(fd);
		SKIP(return, "no /dev/vda: run the guest with --disk");
	}
	p = map_aligned(fd, HUGE);
	memset(p, 0x43, KIB(64));
	ASSERT_EQ(0, io_uring_queue_init(4, &ring, 0));
	iov = (struct iovec){ p, HUGE };
	ret = io_uring_register_buffers(&ring, &iov, 1);
	if (ret == -EOPNOTSUPP) {
		io_uring_queue_exit(&ring);
		munmap(p, HUGE);
		close(fd);
		SKIP(return, "this kernel registers no file-backed memory");
	}
	ASSERT_EQ(0, ret);
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_write_fixed(sqe, disk, p, KIB(64), MIB(1), 0);
	sqe->flags |= IOSQE_IO_LINK;
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_read_fixed(sqe, disk, p + MIB(1), KIB(64), MIB(1), 0);
	ASSERT_EQ(2, io_uring_submit(&ring));
	ASSERT_EQ(0, io_uring_wait_cqe_nr(&ring, &cqe, 2));
	EXPECT_EQ(0, memcmp(p, p + MIB(1), KIB(64)));
	io_uring_queue_exit(&ring);
	munmap(p, HUGE);
	close(fd);
	close(disk);
}

TEST_F(buffer, numa_node)
{
	unsigned int node;

	if (access("/sys/devices/system/node/node1", F_OK))
		SKIP(return, "one NUMA node: run the guest with --numa 2");
	for (node = 0; node < 2; node++) {
		int fd = buf_create_on(self->dev, 2 * HUGE, 0, node), got = -1;
		size_t i;
		char *p;

		ASSERT_LE(0, fd);
		p = mmap(NULL, 2 * HUGE, PROT_READ, MAP_SHARED, fd, 0);
		for (i = 0; i < 2 * HUGE; i += HUGE / 4) {
			ASSERT_EQ(0, syscall(SYS_get_mempolicy, &got, NULL, 0,
					     p + i, MPOL_F_NODE | MPOL_F_ADDR));
			EXPECT_EQ(node, got);
		}
		munmap(p, 2 * HUGE);
		close(fd);
	}
}

/* Become a user without privileges; the device stays open. */
static int become_nobody(void)
{
	return setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	       setresuid(NOBODY, NOBODY, NOBODY);
}

TEST_F(buffer, memlock_limit)
{
	struct rlimit limit = { KIB(64), KIB(64) };
	int status;
	pid_t child;

	child = fork();
	if (!child) {
		int a, b;

		if (setrlimit(RLIMIT_MEMLOCK, &limit) || become_nobody())
			_exit(100);
		if (buf_create(self->dev, KIB(68)) != -ENOMEM)
			_exit(1);
		a = buf_create(self->dev, KIB(40));
		if (a < 0 || counter("charged_pages") != 10)
			_exit(2);
		if (buf_create(self->dev, KIB(28)) != -ENOMEM)
			_exit(3);
		b = buf_create(self->dev, KIB(24));
		if (b < 0 || counter("charged_pages") != 16)
			_exit(4);
		/* A derived descriptor is the same pages: no charge. */
		if (buf_derive(self->dev, b, TOWPIN_RIGHT_READ) < 0 ||
		    counter("charged_pages") != 16)
			_exit(5);
		close(a);
		if (counter("charged_pages") != 6)
			_exit(6);
		if (buf_create(self->dev, KIB(40)) < 0)
			_exit(7);
		_exit(0);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	/* Root, with CAP_IPC_LOCK, is not charged. */
	close(buf_create(self->dev, KIB(4096)));
	EXPECT_EQ(0, counter("charged_pages"));
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int ret = fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return ret;
}

static long read_number(const char *path)
{
	FILE *f = fopen(path, "re");
	long value = -1;

	if (f) {
		if (fscanf(f, "%ld", &value) != 1)
			value = -1;
		fclose(f);
	}
	return value;
}

#define CGROUP "/sys/fs/cgroup/towpin-test"

/* Buffers count for the memory cgroup; its limit is ENOMEM, not the OOM killer. */
TEST_F(buffer, memory_cgroup)
{
	int status;
	pid_t child;

	write_file("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	rmdir(CGROUP);
	ASSERT_EQ(0, mkdir(CGROUP, 0755));
	ASSERT_EQ(0, write_file(CGROUP "/memory.max", "16M"));
	child = fork();
	if (!child) {
		long before, after;
		int fd;

		if (write_file(CGROUP "/cgroup.procs", "0"))
			_exit(1);
		before = read_number(CGROUP "/memory.current");
		fd = buf_create(self->dev, MIB(8));
		after = read_number(CGROUP "/memory.current");
		if (fd < 0 || after - before < (long)MIB(8))
			_exit(2);
		if (buf_create(self->dev, MIB(64)) != -ENOMEM)
			_exit(3);
		close(fd);
		/* Charges given back are cached by the page. */
		if (read_number(CGROUP "/memory.current") > (long)MIB(6))
			_exit(4);
		_exit(0);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, rmdir(CGROUP));
}

TEST_HARNESS_MAIN

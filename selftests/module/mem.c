// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory handles: attaching buffers and foreign dma-bufs, registering user
 * memory of every kind, and giving both back.
 */
#include <grp.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include "fixture.h"
#include "kselftest_harness.h"


FIXTURE(mem) {
	int dev;
	size_t page;
};

FIXTURE_SETUP(mem)
{
	self->page = sysconf(_SC_PAGESIZE);
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_setup(self->dev, 64, NULL));
}

FIXTURE_TEARDOWN(mem)
{
	close(self->dev);
	EXPECT_TRUE(counters_idle());
}

static void *map_anon(size_t length)
{
	return mmap(NULL, length, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Copy by the module, waited for. 0, or what SUBMIT or the record says. */
static int copy(int dev, uint32_t dst, uint64_t dst_off, uint32_t src,
		uint64_t src_off, uint64_t len)
{
	struct towpin_op op = {
		.opcode = TOWPIN_OP_COPY, .slot = 0, .src = src, .dst = dst,
		.src_off = src_off, .dst_off = dst_off, .len = len,
	};

	return dev_run(dev, &op);
}

TEST_F(mem, attach_errors)
{
	struct towpin_attach arg = { .size = sizeof(arg), .fd = 999 };
	int file = open("/proc/self/exe", O_RDONLY);

	EXPECT_EQ(-EBADF, dev_ioctl(self->dev, TOWPIN_IOC_ATTACH, &arg));
	EXPECT_EQ(-EINVAL, mem_attach(self->dev, file));
	EXPECT_EQ(-EINVAL, mem_attach(self->dev, self->dev));
	arg.handle = 1;
	EXPECT_EQ(-EINVAL, dev_ioctl(self->dev, TOWPIN_IOC_ATTACH, &arg));
	arg.handle = 0;
	arg.reserved = 1;
	EXPECT_EQ(-EINVAL, dev_ioctl(self->dev, TOWPIN_IOC_ATTACH, &arg));
	close(file);
}

TEST_F(mem, attach_keeps_the_buffer)
{
	int fd = buf_create(self->dev, HUGE), handle;
	struct towpin_attach arg = { .size = sizeof(arg), .fd = fd };

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, dev_ioctl(self->dev, TOWPIN_IOC_ATTACH, &arg));
	EXPECT_EQ(1, arg.handle);
	EXPECT_EQ(HUGE, arg.length);
	EXPECT_EQ(TOWPIN_RIGHT_READ | TOWPIN_RIGHT_WRITE, arg.rights);
	handle = mem_attach(self->dev, fd);
	EXPECT_EQ(2, handle);
	close(fd);
	EXPECT_EQ(1, counter("buffers"));
	EXPECT_EQ(2, counter("handles"));
	EXPECT_EQ(0, mem_detach(self->dev, 1, 0));
	EXPECT_EQ(-ENOENT, mem_detach(self->dev, 1, 0));
	EXPECT_EQ(1, counter("buffers"));
	EXPECT_EQ(0, mem_detach(self->dev, 2, TOWPIN_DETACH_NOWAIT));
	EXPECT_EQ(0, counter("buffers"));
	EXPECT_EQ(-ENOENT, mem_detach(self->dev, 0, 0));
	EXPECT_EQ(-ENOENT, mem_detach(self->dev, ~0U, 0));
	EXPECT_EQ(-EINVAL, mem_detach(self->dev, 1, 2));
}

TEST_F(mem, read_only_is_no_destination)
{
	int fd = buf_create(self->dev, HUGE), ro_fd, ro, rw;

	ro_fd = buf_derive(self->dev, fd, TOWPIN_RIGHT_READ);
	ASSERT_LE(0, ro_fd);
	rw = mem_attach(self->dev, fd);
	ro = mem_attach(self->dev, ro_fd);
	EXPECT_EQ(0, copy(self->dev, rw, 4096, ro, 0, 4096));
	EXPECT_EQ(-EACCES, copy(self->dev, ro, 4096, rw, 0, 4096));
	close(ro_fd);
	close(fd);
}

TEST_F_TIMEOUT(mem, handles_run_out, 120)
{
	int fd = buf_create(self->dev, 4096), i, ret = 0;

	for (i = 0; i < TOWPIN_MAX_HANDLES && ret >= 0; i++)
		ret = mem_attach(self->dev, fd);
	EXPECT_EQ(TOWPIN_MAX_HANDLES, ret);
	EXPECT_EQ(-ENOSPC, mem_attach(self->dev, fd));
	EXPECT_EQ(-ENOSPC, mem_register(self->dev, &i, sizeof(i), 0));
	EXPECT_EQ(0, counter("registered_pages"));
	EXPECT_EQ(0, mem_detach(self->dev, 77, 0));
	EXPECT_EQ(77, mem_attach(self->dev, fd));
	close(fd);
}

TEST_F(mem, register_errors)
{
	struct towpin_register arg = { .size = sizeof(arg), .length = 1 };
	char *p = map_anon(3 * self->page);

	EXPECT_EQ(-EINVAL, mem_register(self->dev, p, 0, 0));
	EXPECT_EQ(-EINVAL, mem_register(self->dev, p, 1, 2));
	EXPECT_EQ(-EOVERFLOW, mem_register(self->dev, p, TOWPIN_MAX_LENGTH + 1,
					   0));
	arg.addr = ~0ULL - 10;
	arg.length = 100;
	EXPECT_EQ(-EOVERFLOW, dev_ioctl(self->dev, TOWPIN_IOC_REGISTER, &arg));
	arg.length = 4;
	EXPECT_EQ(-EFAULT, dev_ioctl(self->dev, TOWPIN_IOC_REGISTER, &arg));
	arg.addr = 0;
	EXPECT_EQ(-EFAULT, dev_ioctl(self->dev, TOWPIN_IOC_REGISTER, &arg));
	if (sizeof(long) == 8) {
		EXPECT_EQ(-ENOMEM, mem_register(self->dev, (void *)4096,
						TOWPIN_MAX_LENGTH, 0));
	}

	/* A hole, and a page that is not writable. */
	ASSERT_EQ(0, munmap(p + self->page, self->page));
	EXPECT_EQ(-EFAULT, mem_register(self->dev, p, 3 * self->page, 0));
	ASSERT_EQ(0, mprotect(p, self->page, PROT_READ));
	EXPECT_EQ(-EFAULT, mem_register(self->dev, p, 16, 0));
	EXPECT_LT(0, mem_register(self->dev, p, 16, TOWPIN_REG_READ_ONLY));
	EXPECT_EQ(1, counter("registered_pages"));
	munmap(p, 3 * self->page);
}

/* Any alignment; exactly the bytes named; pages counted once each. */
TEST_F(mem, register_unaligned)
{
	char *p = map_anon(4 * self->page);
	int fd = buf_create(self->dev, 4 * self->page), buf, reg, ro;
	char *q = mmap(NULL, 4 * self->page, PROT_READ | PROT_WRITE,
		       MAP_SHARED, fd, 0);
	size_t i, length = 2 * self->page + 2;

	for (i = 0; i < 4 * self->page; i++)
		p[i] = i * 7;
	buf = mem_attach(self->dev, fd);
	reg = mem_register(self->dev, p + self->page - 1, length, 0);
	ASSERT_LT(0, reg);
	EXPECT_EQ(4, counter("registered_pages"));
	ASSERT_EQ(0, copy(self->dev, buf, 3, reg, 0, length));
	EXPECT_EQ(0, memcmp(q + 3, p + self->page - 1, length));
	EXPECT_EQ(0, q[length + 3]);
	EXPECT_EQ(-ERANGE, copy(self->dev, buf, 0, reg, 1, length));

	memset(q, 0x33, 4 * self->page);
	ASSERT_EQ(0, copy(self->dev, reg, 0, buf, 0, length));
	EXPECT_EQ((char)((self->page - 2) * 7), p[self->page - 2]);
	EXPECT_EQ(0x33, p[self->page - 1]);
	EXPECT_EQ(0x33, p[self->page - 2 + length]);
	EXPECT_EQ((char)((self->page - 1 + length) * 7),
		  p[self->page - 1 + length]);

	ro = mem_register(self->dev, p, 4 * self->page, TOWPIN_REG_READ_ONLY);
	ASSERT_LT(0, ro);
	EXPECT_EQ(8, counter("registered_pages"));
	EXPECT_EQ(-EACCES, copy(self->dev, ro, 0, buf, 0, 1));
	EXPECT_EQ(0, mem_detach(self->dev, reg, 0));
	EXPECT_EQ(4, counter("registered_pages"));

	/* Unmapping does not end a handle. */
	p[0] = 0x55;
	munmap(p, 4 * self->page);
	ASSERT_EQ(0, copy(self->dev, buf, 0, ro, 0, 1));
	EXPECT_EQ(0x55, q[0]);
	munmap(q, 4 * self->page);
	close(fd);
}

/* Memory that was only read so far is the caller's own all the same. */
TEST_F(mem, register_read_only_follows_writes)
{
	int exe = open("/proc/self/exe", O_RDONLY), fd, buf, kind, reg;
	char *q;

	fd = buf_create(self->dev, 4096);
	q = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	buf = mem_attach(self->dev, fd);
	for (kind = 0; kind < 2; kind++) {
		char *p = kind ? mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE, exe, 0) : map_anon(4096);

		ASSERT_EQ(kind ? 0x7f : 0, *(volatile char *)p);
		reg = mem_register(self->dev, p, 4096, TOWPIN_REG_READ_ONLY);
		ASSERT_LT(0, reg);
		memset(p, 0x44, 4096);
		ASSERT_EQ(0, copy(self->dev, buf, 0, reg, 0, 4096));
		EXPECT_EQ(0x44, q[0]);
		EXPECT_EQ(0x44, q[4095]);
		ASSERT_EQ(0, mem_detach(self->dev, reg, 0));
		munmap(p, 4096);
	}
	/* No right to read, no handle. */
	EXPECT_EQ(0, mprotect(q, 4096, PROT_NONE));
	EXPECT_EQ(-EFAULT, mem_register(self->dev, q, 4096,
					TOWPIN_REG_READ_ONLY));
	munmap(q, 4096);
	q = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT_EQ(-EFAULT, mem_register(self->dev, q, 4096,
					TOWPIN_REG_READ_ONLY));
	munmap(q, 4096);
	close(fd);
	close(exe);
}

static int round_trip(int dev, char *p, size_t length)
{
	int reg = mem_register(dev, p, length, 0), ret;

	if (reg < 0)
		return reg;
	memset(p, 1, 4096);
	ret = copy(dev, reg, length - 4096, reg, 0, 4096);
	if (!ret && p[length - 1] != 1)
		ret = -EILSEQ;
	mem_detach(dev, reg, 0);
	return ret;
}

/* What can be registered, and with which errno the rest is refused. */
TEST_F(mem, register_kinds)
{
	int fd, buf = buf_create(self->dev, HUGE);
	char *p;

	p = map_anon(HUGE);
	EXPECT_EQ(0, round_trip(self->dev, p, HUGE));
	munmap(p, HUGE);

	p = map_anon(3 * HUGE);
	madvise(p, 3 * HUGE, MADV_HUGEPAGE);
	EXPECT_EQ(0, round_trip(self->dev, p, 3 * HUGE));
	munmap(p, 3 * HUGE);

	fd = memfd_create("towpin-test", MFD_CLOEXEC);
	ASSERT_EQ(0, ftruncate(fd, HUGE));
	p = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT_EQ(0, round_trip(self->dev, p, HUGE));
	munmap(p, HUGE);
	close(fd);

	p = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0);
	EXPECT_EQ(0, round_trip(self->dev, p, HUGE));
	munmap(p, HUGE);

	/* A private mapping of a file: the copies are ours. */
	fd = open("/proc/self/exe", O_RDONLY);
	p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	EXPECT_EQ(0, round_trip(self->dev, p, 8192));
	munmap(p, 8192);
	close(fd);

	/* No pages behind it. */
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, self->dev, 0);
	EXPECT_EQ(-EFAULT, mem_register(self->dev, p, 4096, 0));
	munmap(p, 4096);
	close(buf);
}

TEST_F(mem, register_hugetlb)
{
	FILE *f = fopen("/proc/sys/vm/nr_hugepages", "w");
	char *p;

	if (f) {
		fputs("4\n", f);
		fclose(f);
	}
	p = mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (p == MAP_FAILED)
		SKIP(return, "no hugetlb pages to be had");
	EXPECT_EQ(0, round_trip(self->dev, p, HUGE));
	munmap(p, HUGE);
}

/* $TOWPIN_TEST_FS: a writable folder of a filesystem that tracks writes. */
TEST_F(mem, register_tracked_file)
{
	const char *dir = getenv("TOWPIN_TEST_FS");
	char path[256], *p;
	int fd;

	if (!dir)
		SKIP(return, "TOWPIN_TEST_FS is not set");
	snprintf(path, sizeof(path), "%s/file", dir);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ftruncate(fd, 8192));
	p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(-EOPNOTSUPP, mem_register(self->dev, p, 8192, 0));
	EXPECT_LT(0, mem_register(self->dev, p, 8192, TOWPIN_REG_READ_ONLY));
	munmap(p, 8192);
	close(fd);
}

/* The BIOS, as /dev/mem shows it: a mapping with no pages (VM_PFNMAP). */
TEST_F(mem, register_device_memory)
{
	int fd = open("/dev/mem", O_RDONLY);
	char *p = fd < 0 ? MAP_FAILED :
		  mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0xf0000);

	if (p == MAP_FAILED)
		SKIP(return, "/dev/mem cannot be mapped");
	EXPECT_NE(-1, *(volatile char *)p - 256);
	EXPECT_EQ(-EFAULT, mem_register(self->dev, p, 4096,
					TOWPIN_REG_READ_ONLY));
	munmap(p, 4096);
	close(fd);
}

TEST_F(mem, register_is_charged)
{
	struct rlimit limit = { KIB(64), KIB(64) };
	char *p = map_anon(KIB(128));
	int status;
	pid_t child = fork();

	if (!child) {
		int a;

		if (setrlimit(RLIMIT_MEMLOCK, &limit) || setgroups(0, NULL) ||
		    setresuid(65534, 65534, 65534))
			_exit(100);
		/* 60 KiB + 2 bytes at an odd place are 17 pages. */
		if (mem_register(self->dev, p + 4095, KIB(60) + 2, 0) !=
		    -ENOMEM && KIB(60) / 4096 + 2 > 16)
			_exit(1);
		a = mem_register(self->dev, p + 4095, KIB(56) + 2, 0);
		if (a < 0 || counter("charged_pages") != 16)
			_exit(2);
		if (mem_register(self->dev, p, 1, 0) != -ENOMEM)
			_exit(3);
		if (mem_detach(self->dev, a, 0) || counter("charged_pages"))
			_exit(4);
		/* A failure in the middle gives the charge back. */
		munmap(p + 4096, 4096);
		if (mem_register(self->dev, p, KIB(16), 0) != -EFAULT ||
		    counter("charged_pages") || counter("registered_pages"))
			_exit(5);
		_exit(0);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	munmap(p, KIB(128));
}

/* A small part of a huge page keeps all of it, and is charged like that. */
TEST_F(mem, register_charges_huge_pages_whole)
{
	struct rlimit limit = { MIB(6), MIB(6) };
	int status;
	pid_t child = fork();

	if (!child) {
		int fd, held = 0;
		char *p;

		if (setrlimit(RLIMIT_MEMLOCK, &limit) || setgroups(0, NULL) ||
		    setresuid(65534, 65534, 65534))
			_exit(100);
		for (; held < 10; held++) {
			int ret;

			fd = buf_create(self->dev, HUGE);
			if (fd < 0)
				break;
			p = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED,
				 fd, 0);
			ret = mem_register(self->dev, p + 100, 8, 0);
			munmap(p, HUGE);
			close(fd);
			if (ret < 0)
				break;
		}
		/* Whatever is held, with the buffer last tried, is in the limit. */
		_exit(held <= 3 && counter("registered_pages") == held &&
		      counter("charged_pages") <= 3 * 512 ? 0 : 1);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_F_TIMEOUT(mem, register_detach_cycles, 240)
{
	char *p = map_anon(4 * self->page);
	int i, handle = 1;

	for (i = 0; i < 100000 && handle == 1; i++) {
		handle = mem_register(self->dev, p + i % 4096,
				      1 + i % (2 * self->page), 0);
		if (mem_detach(self->dev, handle, 0))
			break;
	}
	EXPECT_EQ(100000, i);
	EXPECT_EQ(0, counter("registered_pages"));
	munmap(p, 4 * self->page);
}

/* A handle in use cannot be taken away under an operation. */
TEST_F(mem, detach_waits)
{
	int fd = buf_create(self->dev, MIB(64)), a, b;
	struct towpin_op op = { .opcode = TOWPIN_OP_COPY, .len = MIB(64) };
	const volatile struct towpin_record *record;

	ASSERT_LE(0, fd);
	record = dev_records(self->dev, 4096);
	a = mem_attach(self->dev, fd);
	b = mem_attach(self->dev, fd);
	close(fd);
	fd = buf_create(self->dev, MIB(64));
	op.dst = mem_attach(self->dev, fd);
	op.src = a;
	close(fd);
	ASSERT_EQ(0, dev_submit(self->dev, &op, 1, NULL));
	EXPECT_EQ(-EBUSY, mem_detach(self->dev, a, TOWPIN_DETACH_NOWAIT));
	EXPECT_EQ(0, mem_detach(self->dev, b, TOWPIN_DETACH_NOWAIT));
	EXPECT_EQ(0, record[0].status);
	EXPECT_EQ(0, mem_detach(self->dev, a, 0));
	EXPECT_EQ(0, dev_wait_one(self->dev, 0));
	EXPECT_EQ(TOWPIN_ST_SUCCESS, record[0].status);
	munmap((void *)record, 4096);
}

/* Data through a foreign dma-buf, both ways. */
static int foreign_round_trip(int dev, int fd, size_t length)
{
	int buf = buf_create(dev, length), foreign, own, ret;
	char *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0);
	size_t i;

	foreign = mem_attach(dev, fd);
	close(fd);
	if (foreign < 0) {
		munmap(p, length);
		close(buf);
		return foreign;
	}
	own = mem_attach(dev, buf);
	for (i = 0; i < length; i++)
		p[i] = i * 13 + (i >> 8);
	ret = copy(dev, foreign, 0, own, 0, length);
	memset(p, 0, length);
	/* With an overlap, to see that it is one memory. */
	if (!ret)
		ret = copy(dev, foreign, 100, foreign, 0, length - 100);
	if (!ret)
		ret = copy(dev, own, 0, foreign, 100, length - 100);
	for (i = 0; !ret && i < length - 100; i++)
		if (p[i] != (char)(i * 13 + (i >> 8)))
			ret = -EILSEQ;
	mem_detach(dev, own, 0);
	mem_detach(dev, foreign, 0);
	munmap(p, length);
	close(buf);
	return ret;
}

TEST_F(mem, attach_udmabuf)
{
	struct udmabuf_create create = { .size = KIB(256) };
	int dev = open("/dev/udmabuf", O_RDWR), fd;

	if (dev < 0)
		SKIP(return, "no /dev/udmabuf");
	create.memfd = memfd_create("towpin-test", MFD_ALLOW_SEALING);
	ASSERT_EQ(0, ftruncate(create.memfd, KIB(256)));
	ASSERT_EQ(0, fcntl(create.memfd, F_ADD_SEALS, F_SEAL_SHRINK));
	fd = ioctl(dev, UDMABUF_CREATE, &create);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, foreign_round_trip(self->dev, fd, KIB(256)));
	close(create.memfd);
	close(dev);
}

TEST_F(mem, attach_system_heap)
{
	struct dma_heap_allocation_data data = {
		.len = MIB(3), .fd_flags = O_RDWR | O_CLOEXEC,
	};
	int heap = open("/dev/dma_heap/system", O_RDONLY), handle;

	if (heap < 0)
		SKIP(return, "no system dma-buf heap");
	ASSERT_EQ(0, ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data));
	EXPECT_EQ(0, foreign_round_trip(self->dev, data.fd, MIB(3)));

	/* The exporter's file mode is the handle's right. */
	data = (struct dma_heap_allocation_data){
		.len = 4096, .fd_flags = O_RDONLY | O_CLOEXEC,
	};
	ASSERT_EQ(0, ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data));
	handle = mem_attach(self->dev, data.fd);
	ASSERT_LT(0, handle);
	EXPECT_EQ(-EACCES, copy(self->dev, handle, 0, handle, 10, 10));
	close(data.fd);
	close(heap);
}

TEST_HARNESS_MAIN

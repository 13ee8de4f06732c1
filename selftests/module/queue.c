// SPDX-License-Identifier: GPL-2.0-only
/*
 * The queue: its records, what SUBMIT refuses and what it lets pass, operations
 * against a plain model, notifications, and every way to wait.
 */
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include "fixture.h"
#include "kselftest_harness.h"

#define ENTRIES	16
#define LENGTH	MIB(4)

FIXTURE(queue) {
	int dev;
	int fd;
	uint32_t mem;			/* the buffer, LENGTH bytes */
	unsigned char *p;		/* mapped */
	const volatile struct towpin_record *records;
};

FIXTURE_SETUP(queue)
{
	uint64_t length;

	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_setup(self->dev, ENTRIES, &length));
	ASSERT_EQ(4096, length);
	self->records = dev_records(self->dev, length);
	ASSERT_NE(MAP_FAILED, self->records);
	self->fd = buf_create(self->dev, LENGTH);
	ASSERT_LE(0, self->fd);
	self->mem = mem_attach(self->dev, self->fd);
	self->p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED,
		       self->fd, 0);
	ASSERT_NE(MAP_FAILED, self->p);
}

FIXTURE_TEARDOWN(queue)
{
	munmap((void *)self->records, 4096);
	munmap(self->p, LENGTH);
	close(self->fd);
	close(self->dev);
	EXPECT_TRUE(counters_idle());
}

static struct towpin_op op_copy(uint32_t mem, uint64_t dst, uint64_t src,
				uint64_t len)
{
	return (struct towpin_op){
		.opcode = TOWPIN_OP_COPY, .src = mem, .dst = mem,
		.src_off = src, .dst_off = dst, .len = len,
	};
}

TEST_F(queue, setup_errors)
{
	struct towpin_setup arg = { .size = sizeof(arg), .entries = 1 };
	int dev = dev_open();
	uint64_t length;

	EXPECT_EQ(-EBUSY, dev_setup(self->dev, 4, NULL));
	EXPECT_EQ(-EINVAL, dev_setup(dev, 0, NULL));
	EXPECT_EQ(-EINVAL, dev_setup(dev, TOWPIN_MAX_ENTRIES + 1, NULL));
	arg.reserved = 1;
	EXPECT_EQ(-EINVAL, dev_ioctl(dev, TOWPIN_IOC_SETUP, &arg));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_SHARED, dev, 0));
	EXPECT_EQ(ENXIO, errno);
	EXPECT_EQ(0, dev_setup(dev, TOWPIN_MAX_ENTRIES, &length));
	EXPECT_EQ(TOWPIN_MAX_ENTRIES * 32, length);
	close(dev);
}

TEST_F(queue, before_setup)
{
	struct towpin_op op = { .opcode = TOWPIN_OP_NOP };
	struct pollfd poller;
	uint64_t n;
	int dev = dev_open();

	EXPECT_EQ(-ENXIO, dev_submit(dev, &op, 1, NULL));
	EXPECT_EQ(-ENXIO, dev_wait(dev, NULL, 0, 1, 0, NULL));
	EXPECT_EQ(-1, read(dev, &n, 8));
	EXPECT_EQ(ENXIO, errno);
	poller = (struct pollfd){ .fd = dev, .events = POLLIN | POLLOUT };
	EXPECT_EQ(1, poll(&poller, 1, 0));
	EXPECT_EQ(POLLERR, poller.revents);
	close(dev);
}

/* Who polls before SETUP is woken by it, and by completions after it. */
TEST_F(queue, polled_before_setup)
{
	struct towpin_op op = { .opcode = TOWPIN_OP_NOP };
	struct epoll_event event = { .events = EPOLLIN };
	int dev = dev_open(), epoll = epoll_create1(0);

	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, dev, &event));
	EXPECT_EQ(1, epoll_wait(epoll, &event, 1, 0));
	EXPECT_EQ(EPOLLERR, event.events);
	ASSERT_EQ(0, dev_setup(dev, 4, NULL));
	EXPECT_EQ(0, epoll_wait(epoll, &event, 1, 0));
	ASSERT_EQ(0, dev_submit(dev, &op, 1, NULL));
	EXPECT_EQ(1, epoll_wait(epoll, &event, 1, 1000));
	EXPECT_EQ(EPOLLIN, event.events);
	close(epoll);
	close(dev);
}

TEST_F(queue, records_cannot_be_written)
{
	void *p;
	int mem;

	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				   MAP_SHARED, self->dev, 0));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE, self->dev, 0));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_PRIVATE,
				   self->dev, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 8192, PROT_READ, MAP_SHARED,
				   self->dev, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_SHARED,
				   self->dev, 4096));
	EXPECT_EQ(EINVAL, errno);
	p = (void *)self->records;
	EXPECT_EQ(-1, mprotect(p, 4096, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	mem = open("/proc/self/mem", O_RDWR);
	EXPECT_EQ(-1, pwrite(mem, "x", 1, (uintptr_t)p));
	close(mem);
	/* Nor by the module on behalf of the caller. */
	EXPECT_EQ(-EFAULT, mem_register(self->dev, p, 4096, 0));
	EXPECT_EQ(TOWPIN_ST_UNUSED, self->records[0].status);
	EXPECT_EQ(TOWPIN_ST_UNUSED, self->records[ENTRIES - 1].status);
}

TEST_F(queue, submit_argument)
{
	struct towpin_op op = { .opcode = TOWPIN_OP_NOP };
	struct towpin_submit good = {
		.size = sizeof(good), .ops = (uintptr_t)&op, .nr = 1,
		.op_size = sizeof(op),
	}, arg;

	arg = good;
	arg.nr = 0;
	EXPECT_EQ(-EINVAL, dev_ioctl(self->dev, TOWPIN_IOC_SUBMIT, &arg));
	arg.nr = TOWPIN_MAX_ENTRIES + 1;
	EXPECT_EQ(-EINVAL, dev_ioctl(self->dev, TOWPIN_IOC_SUBMIT, &arg));
	arg = good;
	arg.op_size = 32;
	EXPECT_EQ(-EINVAL, dev_ioctl(self->dev, TOWPIN_IOC_SUBMIT, &arg));
	arg = good;
	arg.reserved = 1;
	EXPECT_EQ(-EINVAL, dev_ioctl(self->dev, TOWPIN_IOC_SUBMIT, &arg));
	arg = good;
	arg.ops = 8;
	EXPECT_EQ(-EFAULT, dev_ioctl(self->dev, TOWPIN_IOC_SUBMIT, &arg));
	EXPECT_EQ(0, arg.accepted);
	EXPECT_EQ(0, dev_ioctl(self->dev, TOWPIN_IOC_SUBMIT, &good));
	EXPECT_EQ(1, good.accepted);
}

/* Each way to spoil an entry that is right otherwise. */
TEST_F(queue, entry_errors)
{
	const uint64_t far = ~0ULL;
	int efd = eventfd(0, 0), event = event_add(self->dev, efd);
	struct towpin_op good = op_copy(self->mem, 0, LENGTH / 2, 64);
	const struct {
		int error;
		const char *what;
		struct towpin_op op;
	} cases[] = {
#define BAD(_error, _what, ...) { .error = _error, .what = _what, \
	.op = { .opcode = TOWPIN_OP_COPY, .src = self->mem, .dst = self->mem, \
		.len = 64, __VA_ARGS__ } }
		BAD(-EINVAL, "opcode", .opcode = TOWPIN_OP_COPY_CRC + 1),
		BAD(-EINVAL, "opcode 255", .opcode = 255),
		BAD(-EINVAL, "hint", .hint = 2),
		BAD(-EINVAL, "slot", .slot = ENTRIES),
		BAD(-EINVAL, "slot 65535", .slot = 65535),
		BAD(-EINVAL, "flags", .flags = 8),
		BAD(-EINVAL, "both stores", .flags = 3, .notify = self->mem),
		BAD(-EINVAL, "eventfd without flag", .eventfd = 1),
		BAD(-EINVAL, "eventfd index", .flags = TOWPIN_F_EVENTFD,
		    .eventfd = TOWPIN_MAX_EVENTFDS),
		BAD(-ENOENT, "no such eventfd", .flags = TOWPIN_F_EVENTFD,
		    .eventfd = event + 1),
		BAD(-EINVAL, "length 0", .len = 0),
		BAD(-EINVAL, "seed", .seed = 1),
		BAD(-EINVAL, "notify", .notify = self->mem),
		BAD(-EINVAL, "notify_off", .notify_off = 8),
		BAD(-EINVAL, "notify_value", .notify_value = 8),
		BAD(-EINVAL, "unaligned 64", .flags = TOWPIN_F_STORE64,
		    .notify = self->mem, .notify_off = 4),
		BAD(-EINVAL, "unaligned 32", .flags = TOWPIN_F_STORE32,
		    .notify = self->mem, .notify_off = 2),
		BAD(-EINVAL, "wide value", .flags = TOWPIN_F_STORE32,
		    .notify = self->mem, .notify_value = 1ULL << 32),
		BAD(-ERANGE, "store beyond the end", .flags = TOWPIN_F_STORE64,
		    .notify = self->mem, .notify_off = LENGTH),
		BAD(-ERANGE, "store far beyond", .flags = TOWPIN_F_STORE64,
		    .notify = self->mem, .notify_off = far - 7),
		BAD(-ENOENT, "store to no handle", .flags = TOWPIN_F_STORE64,
		    .notify = 9),
		BAD(-ENOENT, "src", .src = 9),
		BAD(-ENOENT, "src 0", .src = 0),
		BAD(-ENOENT, "dst", .dst = ~0U),
		BAD(-EOVERFLOW, "long", .len = TOWPIN_MAX_LENGTH + 1),
		BAD(-EOVERFLOW, "src wraps", .src_off = far, .len = 2),
		BAD(-EOVERFLOW, "dst wraps", .dst_off = far, .len = 2),
		BAD(-EOVERFLOW, "dst wraps to 0", .dst_off = far - 63),
		BAD(-ERANGE, "src end", .src_off = LENGTH - 63),
		BAD(-ERANGE, "dst end", .dst_off = LENGTH - 63),
		BAD(-ERANGE, "src far", .src_off = far - 64),
		BAD(-ERANGE, "dst far", .dst_off = 1ULL << 40),
		BAD(-ERANGE, "len", .len = TOWPIN_MAX_LENGTH),
		BAD(-EINVAL, "nop with len", .opcode = TOWPIN_OP_NOP,
		    .src = 0, .dst = 0),
		BAD(-EINVAL, "nop with src", .opcode = TOWPIN_OP_NOP, .len = 0,
		    .dst = 0),
		BAD(-EINVAL, "nop with dst_off", .opcode = TOWPIN_OP_NOP,
		    .len = 0, .src = 0, .dst = 0, .dst_off = 1),
		BAD(-EINVAL, "fill with src", .opcode = TOWPIN_OP_FILL),
		BAD(-EINVAL, "fill with hint", .opcode = TOWPIN_OP_FILL,
		    .src = 0, .hint = TOWPIN_HINT_NOCACHE),
		BAD(-EINVAL, "crc with dst", .opcode = TOWPIN_OP_CRC32C),
		BAD(-EINVAL, "crc with dst_off", .opcode = TOWPIN_OP_CRC32C,
		    .dst = 0, .dst_off = 1),
		BAD(-EINVAL, "compare with hint", .opcode = TOWPIN_OP_COMPARE,
		    .hint = TOWPIN_HINT_NOCACHE),
		BAD(-EINVAL, "compare with seed", .opcode = TOWPIN_OP_COMPARE,
		    .seed = 1),
#undef BAD
	};
	unsigned char *before = malloc(LENGTH);
	uint32_t accepted;
	size_t i;

	for (i = 0; i < LENGTH; i++)
		self->p[i] = i * 11 + (i >> 9);
	memcpy(before, self->p, LENGTH);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TH_LOG("%s", cases[i].what);
		EXPECT_EQ(cases[i].error, dev_submit(self->dev, &cases[i].op,
						     1, &accepted));
		EXPECT_EQ(0, accepted);
	}
	EXPECT_EQ(0, memcmp(before, self->p, LENGTH));
	EXPECT_EQ(TOWPIN_ST_UNUSED, self->records[0].status);
	ASSERT_EQ(0, dev_submit(self->dev, &good, 1, &accepted));
	EXPECT_EQ(0, memcmp(self->p, before + LENGTH / 2, 64));
	EXPECT_EQ(0, event_del(self->dev, event));
	EXPECT_EQ(-ENOENT, event_del(self->dev, event));
	close(efd);
	free(before);
}

TEST_F(queue, batch_stops_at_the_first_refused)
{
	struct towpin_op ops[ENTRIES];
	uint32_t accepted, i;

	for (i = 0; i < ENTRIES; i++) {
		ops[i] = op_copy(self->mem, i * 4096, MIB(2), 100);
		ops[i].slot = i;
	}
	memset(self->p + MIB(2), 0x77, 100);
	ops[10].dst_off = LENGTH;
	EXPECT_EQ(-ERANGE, dev_submit(self->dev, ops, ENTRIES, &accepted));
	EXPECT_EQ(10, accepted);
	for (i = 0; i < ENTRIES; i++) {
		EXPECT_EQ(i < 10 ? TOWPIN_ST_SUCCESS : TOWPIN_ST_UNUSED,
			  self->records[i].status);
		EXPECT_EQ(i < 10 ? 0x77 : 0, self->p[i * 4096]);
	}
	/* As the user would: mend it and go on from there. */
	ops[10].dst_off = 10 * 4096;
	EXPECT_EQ(0, dev_submit(self->dev, ops + 10, 6, &accepted));
	EXPECT_EQ(6, accepted);
	EXPECT_EQ(0x77, self->p[15 * 4096 + 99]);
}

TEST_F(queue, entries_in_unreadable_memory)
{
	struct towpin_op *ops = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t accepted, i;

	ASSERT_NE(MAP_FAILED, ops);
	ASSERT_EQ(0, munmap((char *)ops + 4096, 4096));
	ops += 4096 / sizeof(*ops) - 8;
	for (i = 0; i < 8; i++)
		ops[i] = (struct towpin_op){ .opcode = TOWPIN_OP_NOP,
					     .slot = i };
	EXPECT_EQ(-EFAULT, dev_submit(self->dev, ops, 16, &accepted));
	EXPECT_EQ(8, accepted);
	EXPECT_EQ(TOWPIN_ST_SUCCESS, self->records[7].status);
}

/* Every slot in flight: EAGAIN at once; afterwards all is well. */
TEST_F_TIMEOUT(queue, full, 60)
{
	int big = buf_create(self->dev, MIB(64)), mem, i;
	struct towpin_op op;
	uint32_t accepted, done;
	struct pollfd poller = { .fd = self->dev, .events = POLLIN | POLLOUT };

	ASSERT_LE(0, big);
	mem = mem_attach(self->dev, big);
	for (i = 0; i < ENTRIES; i++) {
		op = op_copy(mem, 0, MIB(32), MIB(32));
		op.slot = i;
		ASSERT_EQ(0, dev_submit(self->dev, &op, 1, &accepted));
	}
	/* On two CPUs the last of them cannot have begun. */
	op = op_copy(mem, 0, MIB(32), 64);
	op.slot = ENTRIES - 1;
	EXPECT_EQ(-EAGAIN, dev_submit(self->dev, &op, 1, &accepted));
	EXPECT_EQ(TOWPIN_ST_PENDING, self->records[ENTRIES - 1].status);
	ASSERT_LE(0, poll(&poller, 1, 0));
	EXPECT_EQ(-ETIME, dev_wait(self->dev, NULL, 0, ENTRIES, 0, &done));
	EXPECT_GT(ENTRIES, done);
	EXPECT_EQ(-ETIME, dev_wait(self->dev, NULL, 0, ENTRIES,
				   now_ns() + 1000000, &done));
	EXPECT_EQ(0, dev_wait(self->dev, NULL, 0, ENTRIES, FOREVER, &done));
	EXPECT_EQ(ENTRIES, done);
	EXPECT_EQ(0, dev_submit(self->dev, &op, 1, &accepted));
	close(big);
}

TEST_F(queue, notification_and_eventfd)
{
	int efd = eventfd(0, EFD_NONBLOCK), index = event_add(self->dev, efd);
	volatile uint64_t *word = (uint64_t *)self->p;
	volatile uint32_t *half = (uint32_t *)self->p + 4;
	uint64_t count;
	struct towpin_op op;
	uint64_t size;

	EXPECT_EQ(0, index);
	/* Inline and by a worker. */
	for (size = 64; size <= MIB(1); size *= 16384) {
		*word = 0;
		memset((void *)half, 0xff, 8);
		memset(self->p + MIB(2), size >> 8 | 1, size);
		op = op_copy(self->mem, MIB(1), MIB(2), size);
		op.flags = TOWPIN_F_STORE64 | TOWPIN_F_EVENTFD;
		op.notify = self->mem;
		op.notify_value = 0x1122334455667788;
		op.eventfd = index;
		ASSERT_EQ(0, dev_submit(self->dev, &op, 1, NULL));
		while (!*word)
			usleep(100);
		EXPECT_EQ(0x1122334455667788, *word);
		EXPECT_EQ(0, memcmp(self->p + MIB(1), self->p + MIB(2), size));
		ASSERT_EQ(0, dev_wait_one(self->dev, 0));
		while (read(efd, &count, 8) < 0)
			usleep(100);
		EXPECT_EQ(1, count);

		op.flags = TOWPIN_F_STORE32;
		op.notify_off = 16;
		op.notify_value = 0xcafe;
		op.eventfd = 0;
		ASSERT_EQ(0, dev_submit(self->dev, &op, 1, NULL));
		ASSERT_EQ(0, dev_wait_one(self->dev, 0));
		EXPECT_EQ(0xcafe, half[0]);
		EXPECT_EQ(0xffffffff, half[1]);
		EXPECT_EQ(-1, read(efd, &count, 8));
	}
	/* An odd address cannot be stored to. */
	op.notify = mem_register(self->dev, self->p + 2, 4096, 0);
	ASSERT_EQ(-EINVAL, dev_submit(self->dev, &op, 1, NULL));
	close(efd);
}

/* The last bytes of a memory can be stored to, whatever its size. */
TEST_F(queue, store_at_the_end)
{
	static const uint64_t lengths[] = { 4096, 8192, MIB(2), MIB(2) + 4096,
					    MIB(16) };
	size_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint64_t length = lengths[i];
		int fd = buf_create(self->dev, length);
		struct towpin_op op = {
			.opcode = TOWPIN_OP_NOP, .flags = TOWPIN_F_STORE32,
			.notify = mem_attach(self->dev, fd),
			.notify_off = length - 4, .notify_value = 0xabcdef01,
		};
		char *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED,
			       fd, 0);
		uint32_t last;

		ASSERT_EQ(0, dev_submit(self->dev, &op, 1, NULL));
		memcpy(&last, p + length - 4, 4);
		EXPECT_EQ(0xabcdef01, last);
		op.flags = TOWPIN_F_STORE64;
		op.notify_off = length - 8;
		op.notify_value = 0x1111111122222222;
		ASSERT_EQ(0, dev_submit(self->dev, &op, 1, NULL));
		memcpy(&last, p + length - 4, 4);
		EXPECT_EQ(0x11111111, last);
		munmap(p, length);
		close(fd);
	}
}

TEST_F(queue, eventfd_errors)
{
	int efd = eventfd(0, 0), i, ret = 0;

	EXPECT_EQ(-EBADF, event_add(self->dev, 999));
	EXPECT_EQ(-EINVAL, event_add(self->dev, self->fd));
	for (i = 0; i < TOWPIN_MAX_EVENTFDS && ret >= 0; i++)
		ret = event_add(self->dev, efd);
	EXPECT_EQ(TOWPIN_MAX_EVENTFDS - 1, ret);
	EXPECT_EQ(-ENOSPC, event_add(self->dev, efd));
	EXPECT_EQ(0, event_del(self->dev, 1234));
	EXPECT_EQ(1234, event_add(self->dev, efd));
	EXPECT_EQ(-ENOENT, event_del(self->dev, TOWPIN_MAX_EVENTFDS));
	close(efd);
}

TEST_F(queue, wait_arguments)
{
	uint32_t slots[] = { 0, ENTRIES }, done = 0;
	struct towpin_wait arg = { .size = sizeof(arg), .min = 1 };

	EXPECT_EQ(-EINVAL, dev_wait(self->dev, slots, 2, 1, 0, &done));
	EXPECT_EQ(-EINVAL, dev_wait(self->dev, slots, 1, 0, 0, &done));
	EXPECT_EQ(-EINVAL, dev_wait(self->dev, slots, 1, 2, 0, &done));
	EXPECT_EQ(-EINVAL, dev_wait(self->dev, slots, 0, 1, 0, &done));
	EXPECT_EQ(-EINVAL, dev_wait(self->dev, NULL, 0, ENTRIES + 1, 0, &done));
	EXPECT_EQ(-EINVAL, dev_wait(self->dev, slots, TOWPIN_MAX_ENTRIES + 1,
				    1, 0, &done));
	EXPECT_EQ(-EFAULT, dev_wait(self->dev, (void *)8, 1, 1, 0, &done));
	EXPECT_EQ(-EFAULT, dev_wait(self->dev, (void *)8, 1000, 1, 0, &done));
	/* Unused slots are not in flight. */
	EXPECT_EQ(0, dev_wait(self->dev, slots, 1, 1, 0, &done));
	EXPECT_EQ(1, done);
	arg.reserved = 1;
	EXPECT_EQ(-EINVAL, dev_ioctl(self->dev, TOWPIN_IOC_WAIT, &arg));
}

static void on_alarm(int signal)
{
	(void)signal;
}

/* A busy worker, so that there is something to wait for: about a second. */
static int start_long(int dev, uint16_t slot, int *fd)
{
	struct towpin_op op;

	*fd = buf_create(dev, MIB(256));
	op = op_copy(mem_attach(dev, *fd), 0, MIB(128), MIB(128));
	op.slot = slot;
	return dev_submit(dev, &op, 1, NULL);
}

TEST_F(queue, wait_is_interrupted_or_restarted)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval timer = { .it_value.tv_usec = 2000 };
	int fd, ret;

	sigaction(SIGALRM, &action, NULL);
	ASSERT_EQ(0, start_long(self->dev, 3, &fd));
	setitimer(ITIMER_REAL, &timer, NULL);
	ret = dev_wait_one(self->dev, 3);
	EXPECT_TRUE(ret == -EINTR || (!ret && self->records[3].status));

	action.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	EXPECT_EQ(0, dev_wait_one(self->dev, 3));
	EXPECT_EQ(TOWPIN_ST_SUCCESS, self->records[3].status);
	close(fd);
}

TEST_F(queue, read_and_poll)
{
	struct pollfd poller = { .fd = self->dev, .events = POLLIN | POLLOUT };
	struct towpin_op ops[3] = {
		{ .opcode = TOWPIN_OP_NOP, .slot = 0 },
		{ .opcode = TOWPIN_OP_NOP, .slot = 1 },
		{ .opcode = TOWPIN_OP_NOP, .slot = 2 },
	};
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int epoll = epoll_create1(0), fd, fd2;
	uint64_t n;

	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, self->dev, &event));
	EXPECT_EQ(1, poll(&poller, 1, 0));
	EXPECT_EQ(POLLOUT, poller.revents);
	EXPECT_EQ(0, fcntl(self->dev, F_SETFL, O_NONBLOCK));
	EXPECT_EQ(-1, read(self->dev, &n, 8));
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_EQ(-1, read(self->dev, &n, 7));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(0, epoll_wait(epoll, &event, 1, 0));

	ASSERT_EQ(0, dev_submit(self->dev, ops, 3, NULL));
	EXPECT_EQ(1, poll(&poller, 1, 0));
	EXPECT_EQ(POLLIN | POLLOUT, poller.revents);
	EXPECT_EQ(1, epoll_wait(epoll, &event, 1, 0));
	EXPECT_EQ(0, epoll_wait(epoll, &event, 1, 0));
	EXPECT_EQ(8, read(self->dev, &n, 8));
	EXPECT_EQ(3, n);
	EXPECT_EQ(-1, read(self->dev, &n, 8));

	/* Blocking, until a worker is done. */
	EXPECT_EQ(0, fcntl(self->dev, F_SETFL, 0));
	ASSERT_EQ(0, start_long(self->dev, 5, &fd));
	EXPECT_EQ(1, epoll_wait(epoll, &event, 1, -1));
	EXPECT_EQ(8, read(self->dev, &n, 8));
	EXPECT_EQ(1, n);
	EXPECT_EQ(TOWPIN_ST_SUCCESS, self->records[5].status);
	ASSERT_EQ(0, start_long(self->dev, 5, &fd2));
	EXPECT_EQ(8, read(self->dev, &n, 8));
	EXPECT_EQ(TOWPIN_ST_SUCCESS, self->records[5].status);
	EXPECT_EQ(-1, read(self->dev, NULL, 0));
	close(fd);
	close(fd2);
	close(epoll);
}

static uint32_t rng = 1;

static uint32_t random_below(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 17;
	rng ^= rng << 5;
	return rng % n;
}

static uint32_t model_crc(uint32_t seed, const unsigned char *p, size_t len)
{
	uint32_t crc = ~seed;
	int k;

	while (len--) {
		crc ^= *p++;
		for (k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

TEST_F(queue, crc_known_answers)
{
	struct towpin_op op = {
		.opcode = TOWPIN_OP_CRC32C, .src = self->mem, .len = 32,
	};
	int i;

	/* RFC 3720, B.4 */
	ASSERT_EQ(0, dev_submit(self->dev, &op, 1, NULL));
	EXPECT_EQ(0x8a9136aa, self->records[0].crc);
	memset(self->p, 0xff, 32);
	ASSERT_EQ(0, dev_submit(self->dev, &op, 1, NULL));
	EXPECT_EQ(0x62a8ab43, self->records[0].crc);
	for (i = 0; i < 32; i++)
		self->p[i] = i;
	ASSERT_EQ(0, dev_submit(self->dev, &op, 1, NULL));
	EXPECT_EQ(0x46dd794e, self->records[0].crc);
	op.len = 10;
	ASSERT_EQ(0, dev_submit(self->dev, &op, 1, NULL));
	op.seed = self->records[0].crc;
	op.src_off = 10;
	op.len = 22;
	ASSERT_EQ(0, dev_submit(self->dev, &op, 1, NULL));
	EXPECT_EQ(0x46dd794e, self->records[0].crc);
}

/* One random operation on the buffer and on a model of it. */
static int random_op(int dev, const volatile struct towpin_record *record,
		     uint32_t mem, const unsigned char *p, unsigned char *model,
		     uint32_t longest, struct towpin_op *last)
{
	uint32_t len = 1 + random_below(longest);
	uint32_t src = random_below(LENGTH - len), dst = random_below(LENGTH - len);
	struct towpin_op op = {
		.opcode = 1 + random_below(TOWPIN_OP_COPY_CRC), .src = mem,
		.dst = mem, .src_off = src, .dst_off = dst, .len = len,
	};
	uint64_t pattern = (uint64_t)random_below(~0U) << 32 | random_below(~0U);
	uint64_t bytes = len;
	uint32_t crc = 0, differs = 0, i;

	if (random_below(2))		/* more overlaps */
		op.dst_off = dst = random_below(2) && src + len + 99 < LENGTH ?
			src + random_below(99) : src - (src > 99 ? 99 : 0);
	switch (op.opcode) {
	case TOWPIN_OP_COPY_CRC:
		op.seed = random_below(~0U);
		/* fall through */
	case TOWPIN_OP_COPY:
		op.hint = random_below(2);
		memmove(model + dst, model + src, len);
		if (op.opcode == TOWPIN_OP_COPY_CRC)
			crc = model_crc(op.seed, model + dst, len);
		break;
	case TOWPIN_OP_FILL:
		op.src = 0;
		op.src_off = pattern;
		for (i = 0; i < len; i++)
			model[dst + i] = pattern >> i % 8 * 8;
		break;
	case TOWPIN_OP_COMPARE:
		/* Mostly equal, but for one byte at most. */
		if (random_below(3))
			op.dst_off = dst = src;
		for (i = 0; i < len && model[src + i] == model[dst + i]; i++)
			;
		bytes = i;
		differs = i < len;
		break;
	case TOWPIN_OP_CRC32C:
		op.dst = 0;
		op.dst_off = 0;
		op.seed = random_below(2) ? random_below(~0U) : 0;
		crc = model_crc(op.seed, model + src, len);
		break;
	}
	*last = op;
	if (dev_submit(dev, &op, 1, NULL) || dev_wait_one(dev, 0))
		return 1;
	if (record->status != TOWPIN_ST_SUCCESS || record->result != differs ||
	    record->bytes != bytes || record->bytes_completed != bytes ||
	    record->crc != crc || record->reserved)
		return 2;
	if (record->engine != (len <= 16384 ? TOWPIN_ENGINE_INLINE :
					      TOWPIN_ENGINE_CPU))
		return 3;
	return memcmp(p, model, LENGTH) ? 4 : 0;
}

TEST_F_TIMEOUT(queue, operations_against_a_model, 240)
{
	unsigned char *model = malloc(LENGTH);
	struct towpin_op op;
	uint64_t last = 0;
	int i;

	rng = getpid() * 2654435761u | 1;
	TH_LOG("seed %u", rng);
	for (i = 0; i < (int)LENGTH; i++)
		model[i] = self->p[i] = random_below(256);
	for (i = 0; i < 300; i++) {
		uint32_t longest = i % 3 == 0 ? 100 : i % 3 == 1 ? 20000 :
				   i % 30 == 2 ? 2500000 : 70000;

		ASSERT_EQ(0, random_op(self->dev, self->records, self->mem,
				       self->p, model, longest, &op))
			TH_LOG("%d: opcode %u hint %u src %#llx dst %#llx len %#llx",
			       i, op.opcode, op.hint, op.src_off, op.dst_off,
			       op.len);
		ASSERT_LT(last, self->records[0].op_id);
		last = self->records[0].op_id;
	}
	free(model);
}

/* Two registrations of user memory, through many small pages. */
TEST_F(queue, scattered_user_memory)
{
	size_t len = KIB(600), i;
	unsigned char *user = malloc(len + 8192) + 123;
	int mem = mem_register(self->dev, user, len, 0);
	struct towpin_op op = op_copy(self->mem, 77, 0, len);

	ASSERT_LT(0, mem);
	for (i = 0; i < len; i++)
		user[i] = i * 31 + (i >> 11);
	op.src = mem;
	ASSERT_EQ(0, dev_submit(self->dev, &op, 1, NULL));
	ASSERT_EQ(0, dev_wait_one(self->dev, 0));
	EXPECT_EQ(0, memcmp(self->p + 77, user, len));

	op = op_copy(mem, 5, 2, len - 5);
	op.slot = 1;
	memmove(self->p + 5, user + 2, len - 5);
	ASSERT_EQ(0, dev_submit(self->dev, &op, 1, NULL));
	ASSERT_EQ(0, dev_wait_one(self->dev, 1));
	EXPECT_EQ(0, memcmp(self->p + 5, user + 5, len - 5));
}

struct hammer {
	pthread_t thread;
	int dev;
	uint32_t mem;
	uint16_t slot;
	const volatile struct towpin_record *records;
	int failures;
};

static void *hammer(void *arg)
{
	struct hammer *h = arg;
	int i;

	for (i = 0; i < 500; i++) {
		struct towpin_op op = op_copy(h->mem, h->slot * KIB(128),
					      MIB(2), i % 5 ? 512 : KIB(32));

		op.slot = h->slot;
		if (dev_submit(h->dev, &op, 1, NULL) ||
		    dev_wait_one(h->dev, h->slot) ||
		    h->records[h->slot].status != TOWPIN_ST_SUCCESS)
			h->failures++;
	}
	return NULL;
}

/* Threads that each use a slot of their own never meet. */
TEST_F_TIMEOUT(queue, many_threads, 120)
{
	struct hammer h[8];
	int i;

	for (i = 0; i < 8; i++) {
		h[i] = (struct hammer){
			.dev = self->dev, .mem = self->mem, .slot = i,
			.records = self->records,
		};
		ASSERT_EQ(0, pthread_create(&h[i].thread, NULL, hammer, &h[i]));
	}
	for (i = 0; i < 8; i++) {
		pthread_join(h[i].thread, NULL);
		EXPECT_EQ(0, h[i].failures);
	}
}

TEST_HARNESS_MAIN

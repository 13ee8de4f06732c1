// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every allocation and copy on the way of each call fails once, the first, the
 * second and so on until none is left to fail (fail-nth): the call then gives a
 * documented error or succeeds, leaves nothing behind, and works the next time.
 * Needs a kernel with fault injection; others skip.
 */
#include "fixture.h"
#include "kselftest_harness.h"

/* More than any call here has points to fail at. */
#define NTH_MAX	2000

static int nth_fd = -1;

static void set_knob(const char *attr, const char *knob, const char *value)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", attr, knob);
	fd = open(path, O_WRONLY);
	if (fd >= 0) {
		if (write(fd, value, strlen(value)) < 0)
			perror(path);
		close(fd);
	}
}

FIXTURE(fault) {
	int dev;
	int fd;
	char *memory;
};

FIXTURE_SETUP(fault)
{
	static const char * const attrs[] = {
		"failslab", "fail_page_alloc", "fail_usercopy",
	};
	size_t i;

	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (nth_fd < 0)
		SKIP(return, "a kernel without fault injection");
	for (i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++) {
		set_knob(attrs[i], "ignore-gfp-wait", "N");
		set_knob(attrs[i], "min-order", "0");
		set_knob(attrs[i], "verbose", "0");
	}
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_setup(self->dev, 128, NULL));
	self->fd = buf_create(self->dev, MIB(2));
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(1, mem_attach(self->dev, self->fd));
	self->memory = mmap(NULL, MIB(1), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	ASSERT_NE(MAP_FAILED, self->memory);
}

FIXTURE_TEARDOWN(fault)
{
	if (nth_fd < 0)
		return;
	close(nth_fd);
	close(self->fd);
	close(self->dev);
	munmap(self->memory, MIB(1));
	EXPECT_TRUE(counters_idle());
}

/* What the ways to call the module have in common: 0 or more, or an errno. */
struct call {
	const char *name;
	int (*make)(int dev, int fd, char *memory);
	void (*undo)(int dev, int ret);
};

static int make_open(int dev, int fd, char *memory)
{
	int ret = dev_open();

	return ret < 0 ? -errno : ret;
}

static int make_small(int dev, int fd, char *memory)
{
	return buf_create(dev, KIB(16));
}

static int make_huge(int dev, int fd, char *memory)
{
	return buf_create(dev, MIB(2) + 4096);
}

static int make_derived(int dev, int fd, char *memory)
{
	return buf_derive(dev, fd, TOWPIN_RIGHT_READ);
}

static int make_attached(int dev, int fd, char *memory)
{
	return mem_attach(dev, fd);
}

static int make_registered(int dev, int fd, char *memory)
{
	return mem_register(dev, memory + 100, KIB(64), 0);
}

static int make_event(int dev, int fd, char *memory)
{
	int efd = eventfd(0, EFD_CLOEXEC), ret;

	if (efd < 0)
		return -errno;
	ret = event_add(dev, efd);
	close(efd);
	return ret;
}

static int make_setup(int dev, int fd, char *memory)
{
	int other = dev_open(), ret;

	if (other < 0)
		return -errno;
	ret = dev_setup(other, 4096, NULL);
	close(other);
	return ret;
}

static int make_info(int dev, int fd, char *memory)
{
	struct towpin_buf_info info;

	return buf_info(dev, fd, &info);
}

static int make_copy(int dev, int fd, char *memory)
{
	struct towpin_op op = {
		.opcode = TOWPIN_OP_COPY, .src = 1, .dst = 1, .dst_off = 4096,
		.len = 4096,
	};

	return dev_submit(dev, &op, 1, NULL);
}

static int make_large_copy(int dev, int fd, char *memory)
{
	struct towpin_op op = {
		.opcode = TOWPIN_OP_COPY, .slot = 1, .src = 1, .dst = 1,
		.dst_off = MIB(1), .len = MIB(1),
	};
	int ret = dev_submit(dev, &op, 1, NULL);

	/* Started, although the answer could not be written. */
	while (dev_wait_one(dev, 1))
		;
	return ret;
}

static int make_wait(int dev, int fd, char *memory)
{
	uint32_t slots[100] = { 0 };

	return dev_wait(dev, slots, 100, 1, FOREVER, NULL);
}

static int make_mapping(int dev, int fd, char *memory)
{
	void *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, dev, 0);
	void *q = mmap(NULL, MIB(2), PROT_READ, MAP_SHARED, fd, 0);
	int ret = p == MAP_FAILED || q == MAP_FAILED ? -ENOMEM : 0;

	if (p != MAP_FAILED)
		munmap(p, 4096);
	if (q != MAP_FAILED)
		munmap(q, MIB(2));
	return ret;
}

static void undo_fd(int dev, int ret)
{
	close(ret);
}

static void undo_handle(int dev, int ret)
{
	mem_detach(dev, ret, 0);
}

static void undo_event(int dev, int ret)
{
	event_del(dev, ret);
}

static const struct call calls[] = {
	{ "open", make_open, undo_fd },
	{ "BUF_CREATE, small", make_small, undo_fd },
	{ "BUF_CREATE, huge", make_huge, undo_fd },
	{ "BUF_DERIVE", make_derived, undo_fd },
	{ "BUF_INFO", make_info, NULL },
	{ "ATTACH", make_attached, undo_handle },
	{ "REGISTER", make_registered, undo_handle },
	{ "EVENTFD_ADD", make_event, undo_event },
	{ "SETUP", make_setup, NULL },
	{ "SUBMIT, inline", make_copy, NULL },
	{ "SUBMIT, worker", make_large_copy, NULL },
	{ "WAIT", make_wait, NULL },
	{ "mmap", make_mapping, NULL },
};

/*
 * Is the failure still to come? Then switch it off. Reading and writing the file
 * are points that can fail themselves.
 */
static bool nth_pending(void)
{
	char text[16] = "";
	bool pending = pread(nth_fd, text, sizeof(text) - 1, 0) < 0 ||
		       atoi(text) > 0;

	while (write(nth_fd, "0", 1) < 0)
		pending = true;
	return pending;
}

/* All that exists, to compare before and after. */
static void read_counters(char *text, size_t size)
{
	int fd = open("/sys/kernel/debug/towpin/counters", O_RDONLY);
	ssize_t n = read(fd, text, size - 1);

	text[n < 0 ? 0 : n] = '\0';
	close(fd);
}

/* How many points failed, or a negative errno that is not documented. */
static int sweep(const struct call *call, int dev, int fd, char *memory)
{
	char before[512], after[512], text[16];
	int nth, ret, tries;
	bool pending;

	for (nth = 1; nth < NTH_MAX; nth++) {
		read_counters(before, sizeof(before));
		snprintf(text, sizeof(text), "%d", nth);
		if (write(nth_fd, text, strlen(text)) < 0)
			return -errno;
		ret = call->make(dev, fd, memory);
		pending = nth_pending();
		if (ret >= 0 && call->undo)
			call->undo(dev, ret);
		if (ret < 0 && ret != -ENOMEM && ret != -EFAULT &&
		    ret != -ENFILE)
			return ret;
		/* What is freed by RCU or a worker may be a moment late. */
		for (tries = 0; tries < 1000; tries++) {
			read_counters(after, sizeof(after));
			if (!strcmp(before, after))
				break;
			usleep(1000);
		}
		if (strcmp(before, after))
			return -EUCLEAN;
		if (pending)
			return nth - 1;
	}
	return -E2BIG;
}

TEST_F_TIMEOUT(fault, each_call, 600)
{
	size_t i;
	int ret;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const struct call *call = &calls[i];

		/* Once without faults, for what is allocated only once. */
		ret = call->make(self->dev, self->fd, self->memory);
		ASSERT_LE(0, ret);
		if (call->undo)
			call->undo(self->dev, ret);

		ret = sweep(call, self->dev, self->fd, self->memory);
		EXPECT_LE(0, ret);
		TH_LOG("%s: %d points failed", call->name, ret);

		ret = call->make(self->dev, self->fd, self->memory);
		ASSERT_LE(0, ret);
		if (call->undo)
			call->undo(self->dev, ret);
	}
}

TEST_HARNESS_MAIN

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the module's tests share: one call per ioctl, and the counters.
 *
 * Invariants: calls answer a value or a negative errno, like the kernel does;
 * nothing here asserts but counters_idle().
 */
#ifndef TOWPIN_TEST_FIXTURE_H
#define TOWPIN_TEST_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/towpin.h>

#define KIB(n)	((uint64_t)(n) << 10)
#define MIB(n)	((uint64_t)(n) << 20)
#define GIB(n)	((uint64_t)(n) << 30)
#define FOREVER	(~0ULL)
#define HUGE	MIB(2)

static inline int dev_open(void)
{
	return open("/dev/towpin", O_RDWR | O_CLOEXEC);
}

static inline int dev_ioctl(int dev, unsigned long cmd, void *arg)
{
	int ret = ioctl(dev, cmd, arg);

	return ret < 0 ? -errno : ret;
}

static inline int buf_create_on(int dev, uint64_t length, uint32_t flags,
				uint32_t node)
{
	struct towpin_buf_create arg = {
		.size = sizeof(arg), .flags = flags, .length = length,
		.node = node,
	};

	return dev_ioctl(dev, TOWPIN_IOC_BUF_CREATE, &arg);
}

static inline int buf_create(int dev, uint64_t length)
{
	return buf_create_on(dev, length, 0, TOWPIN_NODE_ANY);
}

static inline int buf_derive(int dev, int fd, uint32_t rights)
{
	struct towpin_buf_derive arg = {
		.size = sizeof(arg), .fd = fd, .rights = rights,
	};

	return dev_ioctl(dev, TOWPIN_IOC_BUF_DERIVE, &arg);
}

static inline int buf_info(int dev, int fd, struct towpin_buf_info *arg)
{
	*arg = (struct towpin_buf_info){ .size = sizeof(*arg), .fd = fd };
	return dev_ioctl(dev, TOWPIN_IOC_BUF_INFO, arg);
}

/* The handle. */
static inline int mem_attach(int dev, int fd)
{
	struct towpin_attach arg = { .size = sizeof(arg), .fd = fd };
	int ret = dev_ioctl(dev, TOWPIN_IOC_ATTACH, &arg);

	return ret ? ret : (int)arg.handle;
}

static inline int mem_register(int dev, const void *addr, uint64_t length,
			       uint32_t flags)
{
	struct towpin_register arg = {
		.size = sizeof(arg), .flags = flags, .addr = (uintptr_t)addr,
		.length = length,
	};
	int ret = dev_ioctl(dev, TOWPIN_IOC_REGISTER, &arg);

	return ret ? ret : (int)arg.handle;
}

static inline int mem_detach(int dev, uint32_t handle, uint32_t flags)
{
	struct towpin_detach arg = {
		.size = sizeof(arg), .flags = flags, .handle = handle,
	};

	return dev_ioctl(dev, TOWPIN_IOC_DETACH, &arg);
}

static inline int dev_setup(int dev, uint32_t entries, uint64_t *length)
{
	struct towpin_setup arg = { .size = sizeof(arg), .entries = entries };
	int ret = dev_ioctl(dev, TOWPIN_IOC_SETUP, &arg);

	if (!ret && length)
		*length = arg.records_length;
	return ret;
}

static inline const volatile struct towpin_record *dev_records(int dev,
							       uint64_t length)
{
	return mmap(NULL, length, PROT_READ, MAP_SHARED, dev, 0);
}

static inline int dev_submit(int dev, const struct towpin_op *ops,
			     uint32_t nr, uint32_t *accepted)
{
	struct towpin_submit arg = {
		.size = sizeof(arg), .ops = (uintptr_t)ops, .nr = nr,
		.op_size = sizeof(*ops),
	};
	int ret = dev_ioctl(dev, TOWPIN_IOC_SUBMIT, &arg);

	if (accepted)
		*accepted = arg.accepted;
	return ret;
}

/* nr 0: all slots. */
static inline int dev_wait(int dev, const uint32_t *slots, uint32_t nr,
			   uint32_t min, uint64_t deadline, uint32_t *done)
{
	struct towpin_wait arg = {
		.size = sizeof(arg), .slots = (uintptr_t)slots, .nr = nr,
		.min = min, .deadline = deadline,
	};
	int ret = dev_ioctl(dev, TOWPIN_IOC_WAIT, &arg);

	if (done)
		*done = arg.done;
	return ret;
}

static inline int dev_wait_one(int dev, uint32_t slot)
{
	return dev_wait(dev, &slot, 1, 1, FOREVER, NULL);
}

/*
 * @op, in slot 0 of a queue that is set up, waited for: the record's result
 * (COMPARE: 1 if they differ), or the negative errno of SUBMIT or the record.
 */
static inline int dev_run(int dev, const struct towpin_op *op)
{
	const volatile struct towpin_record *record;
	int ret = dev_submit(dev, op, 1, NULL);

	if (!ret)
		ret = dev_wait_one(dev, 0);
	if (ret)
		return ret;
	record = dev_records(dev, 4096);
	ret = record->status == TOWPIN_ST_SUCCESS ? record->result :
						    -record->result;
	munmap((void *)record, 4096);
	return ret;
}

/* A shared mapping at a multiple of 2 MiB, so that huge pages are mapped whole. */
static inline char *map_aligned(int fd, size_t length)
{
	char *area = mmap(NULL, length + HUGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t up = ((uintptr_t)area + HUGE - 1) / HUGE * HUGE;
	char *at = (char *)up;

	munmap(area, at - area);
	munmap(at + length, area + HUGE - at);
	return mmap(at, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		    fd, 0);
}

static inline int event_add(int dev, int fd)
{
	struct towpin_eventfd arg = { .size = sizeof(arg), .fd = fd };
	int ret = dev_ioctl(dev, TOWPIN_IOC_EVENTFD_ADD, &arg);

	return ret ? ret : (int)arg.index;
}

static inline int event_del(int dev, uint32_t index)
{
	struct towpin_eventfd arg = { .size = sizeof(arg), .index = index };

	return dev_ioctl(dev, TOWPIN_IOC_EVENTFD_DEL, &arg);
}

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* The value of one counter, or -1. */
static inline long counter(const char *name)
{
	FILE *f = fopen("/sys/kernel/debug/towpin/counters", "re");
	char key[64];
	long value, found = -1;

	if (!f)
		return -1;
	while (fscanf(f, "%63s %ld", key, &value) == 2)
		if (!strcmp(key, name))
			found = value;
	fclose(f);
	return found;
}

/*
 * Is nothing left of what was open? Headless contexts are given 20 seconds, and
 * so is what else ends late, such as by the exit of a killed process.
 */
static inline bool counters_idle(void)
{
	uint64_t deadline = now_ns() + 20ULL * 1000000000;
	char line[80];
	bool idle;
	FILE *f;

	for (;;) {
		f = fopen("/sys/kernel/debug/towpin/counters", "re");
		idle = f;
		while (f && fgets(line, sizeof(line), f))
			if (strcmp(strrchr(line, ' '), " 0\n"))
				idle = false;
		if (f)
			fclose(f);
		if (idle || now_ns() > deadline)
			return idle;
		usleep(1000);
	}
}

#endif /* TOWPIN_TEST_FIXTURE_H */

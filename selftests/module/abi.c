// SPDX-License-Identifier: GPL-2.0-only
/*
 * The binary interface: layouts that must never change, and how the ioctl table
 * treats structures of other sizes. Built for 64- and 32-bit callers alike.
 */
#include <stddef.h>
#include "fixture.h"
#include "kselftest_harness.h"

#define SIZE(type, size) \
	_Static_assert(sizeof(struct type) == (size), #type)
#define AT(type, field, offset) \
	_Static_assert(offsetof(struct type, field) == (offset), #type "." #field)

SIZE(towpin_info, 56);
AT(towpin_info, opcodes, 16);
AT(towpin_info, inline_max, 36);
AT(towpin_info, max_length, 40);
AT(towpin_info, inflight, 52);
SIZE(towpin_buf_create, 24);
AT(towpin_buf_create, length, 8);
AT(towpin_buf_create, node, 16);
SIZE(towpin_buf_derive, 16);
AT(towpin_buf_derive, rights, 12);
SIZE(towpin_buf_info, 32);
AT(towpin_buf_info, huge_bytes, 24);
SIZE(towpin_attach, 32);
AT(towpin_attach, handle, 12);
AT(towpin_attach, rights, 24);
SIZE(towpin_register, 32);
AT(towpin_register, handle, 24);
SIZE(towpin_detach, 16);
AT(towpin_detach, handle, 8);
SIZE(towpin_setup, 24);
AT(towpin_setup, records_length, 16);
SIZE(towpin_op, 64);
AT(towpin_op, hint, 1);
AT(towpin_op, slot, 2);
AT(towpin_op, flags, 4);
AT(towpin_op, eventfd, 6);
AT(towpin_op, src, 8);
AT(towpin_op, dst, 12);
AT(towpin_op, notify, 16);
AT(towpin_op, seed, 20);
AT(towpin_op, src_off, 24);
AT(towpin_op, dst_off, 32);
AT(towpin_op, len, 40);
AT(towpin_op, notify_off, 48);
AT(towpin_op, notify_value, 56);
SIZE(towpin_record, 32);
AT(towpin_record, status, 0);		/* these four as a DSA's record */
AT(towpin_record, result, 1);
AT(towpin_record, bytes_completed, 4);
AT(towpin_record, crc, 16);
AT(towpin_record, engine, 2);
AT(towpin_record, bytes, 8);
AT(towpin_record, op_id, 24);
SIZE(towpin_submit, 32);
AT(towpin_submit, nr, 16);
AT(towpin_submit, accepted, 24);
SIZE(towpin_wait, 40);
AT(towpin_wait, deadline, 24);
AT(towpin_wait, done, 32);
SIZE(towpin_eventfd, 16);
AT(towpin_eventfd, index, 12);

_Static_assert(TOWPIN_IOC_INFO == 0xf700 && TOWPIN_IOC_BUF_CREATE == 0xf701 &&
	       TOWPIN_IOC_BUF_DERIVE == 0xf702 && TOWPIN_IOC_BUF_INFO == 0xf703 &&
	       TOWPIN_IOC_ATTACH == 0xf704 && TOWPIN_IOC_REGISTER == 0xf705 &&
	       TOWPIN_IOC_DETACH == 0xf706 && TOWPIN_IOC_SETUP == 0xf707 &&
	       TOWPIN_IOC_SUBMIT == 0xf708 && TOWPIN_IOC_WAIT == 0xf709 &&
	       TOWPIN_IOC_EVENTFD_ADD == 0xf70a &&
	       TOWPIN_IOC_EVENTFD_DEL == 0xf70b, "ioctl numbers");

FIXTURE(abi) {
	int dev;
};

FIXTURE_SETUP(abi)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
}

FIXTURE_TEARDOWN(abi)
{
	close(self->dev);
	EXPECT_TRUE(counters_idle());
}

TEST_F(abi, open_needs_read_and_write)
{
	EXPECT_EQ(-1, open("/dev/towpin", O_RDONLY));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(-1, open("/dev/towpin", O_WRONLY));
	EXPECT_EQ(EACCES, errno);
}

TEST_F(abi, unknown_ioctls)
{
	char arg[64] = { sizeof(arg) };

	EXPECT_EQ(-ENOTTY, dev_ioctl(self->dev, TOWPIN_IOC_EVENTFD_DEL + 1, arg));
	EXPECT_EQ(-ENOTTY, dev_ioctl(self->dev, _IO(TOWPIN_IOC_MAGIC, 0xff), arg));
	EXPECT_EQ(-ENOTTY, dev_ioctl(self->dev, _IO(TOWPIN_IOC_MAGIC - 1, 0), arg));
	EXPECT_EQ(-ENOTTY, dev_ioctl(self->dev,
				     _IOWR(TOWPIN_IOC_MAGIC, 0, __u32), arg));
	EXPECT_EQ(-ENOTTY, dev_ioctl(self->dev, 0, arg));
}

TEST_F(abi, info)
{
	struct towpin_info info = { .size = sizeof(info) };

	ASSERT_EQ(0, dev_ioctl(self->dev, TOWPIN_IOC_INFO, &info));
	EXPECT_EQ(sizeof(info), info.size);
	EXPECT_EQ(TOWPIN_ABI_VERSION, info.abi_version);
	EXPECT_EQ((1 << TOWPIN_ENGINE_INLINE) | (1 << TOWPIN_ENGINE_CPU),
		  info.engines);
	EXPECT_EQ(0x3f, info.opcodes);
	EXPECT_EQ(TOWPIN_MAX_ENTRIES, info.max_entries);
	EXPECT_EQ(TOWPIN_MAX_HANDLES, info.max_handles);
	EXPECT_EQ(TOWPIN_MAX_EVENTFDS, info.max_eventfds);
	EXPECT_EQ(TOWPIN_MAX_LENGTH, info.max_length);
	EXPECT_EQ(0, info.entries);
	EXPECT_EQ(0, info.inflight);

	ASSERT_EQ(0, dev_setup(self->dev, 5, NULL));
	memset(&info, 0, sizeof(info));
	info.size = sizeof(info);
	ASSERT_EQ(0, dev_ioctl(self->dev, TOWPIN_IOC_INFO, &info));
	EXPECT_EQ(5, info.entries);

	info.flags = 1;
	EXPECT_EQ(-EINVAL, dev_ioctl(self->dev, TOWPIN_IOC_INFO, &info));
}

static const struct {
	unsigned int cmd;
	unsigned int size;
} ioctls[] = {
	{ TOWPIN_IOC_INFO, sizeof(struct towpin_info) },
	{ TOWPIN_IOC_BUF_CREATE, sizeof(struct towpin_buf_create) },
	{ TOWPIN_IOC_BUF_DERIVE, sizeof(struct towpin_buf_derive) },
	{ TOWPIN_IOC_BUF_INFO, sizeof(struct towpin_buf_info) },
	{ TOWPIN_IOC_ATTACH, sizeof(struct towpin_attach) },
	{ TOWPIN_IOC_REGISTER, sizeof(struct towpin_register) },
	{ TOWPIN_IOC_DETACH, sizeof(struct towpin_detach) },
	{ TOWPIN_IOC_SETUP, sizeof(struct towpin_setup) },
	{ TOWPIN_IOC_SUBMIT, sizeof(struct towpin_submit) },
	{ TOWPIN_IOC_WAIT, sizeof(struct towpin_wait) },
	{ TOWPIN_IOC_EVENTFD_ADD, sizeof(struct towpin_eventfd) },
	{ TOWPIN_IOC_EVENTFD_DEL, sizeof(struct towpin_eventfd) },
};

/* For each ioctl: sizes, trailing bytes, flags, addresses that fault. */
TEST_F(abi, structure_sizes)
{
	unsigned int page = sysconf(_SC_PAGESIZE);
	char *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int i;

	ASSERT_NE(MAP_FAILED, map);
	ASSERT_EQ(0, munmap(map + page, page));

	for (i = 0; i < sizeof(ioctls) / sizeof(ioctls[0]); i++) {
		unsigned int cmd = ioctls[i].cmd, size = ioctls[i].size;
		__u32 *arg = (__u32 *)map;
		char *end = map + page;

		TH_LOG("ioctl %#x", cmd);
		memset(map, 0, page);
		arg[0] = 0;
		EXPECT_EQ(-EINVAL, dev_ioctl(self->dev, cmd, arg));
		arg[0] = size - 1;
		EXPECT_EQ(-EINVAL, dev_ioctl(self->dev, cmd, arg));
		arg[0] = page + 1;
		EXPECT_EQ(-E2BIG, dev_ioctl(self->dev, cmd, arg));
		arg[0] = size + 8;
		map[size + 7] = 1;
		EXPECT_EQ(-E2BIG, dev_ioctl(self->dev, cmd, arg));
		map[size + 7] = 0;
		arg[0] = size;
		arg[1] = 1U << 31;
		EXPECT_EQ(-EINVAL, dev_ioctl(self->dev, cmd, arg));

		EXPECT_EQ(-EFAULT, dev_ioctl(self->dev, cmd, NULL));
		EXPECT_EQ(-EFAULT, dev_ioctl(self->dev, cmd, end));
		arg = (__u32 *)(end - 4);
		*arg = size;
		EXPECT_EQ(-EFAULT, dev_ioctl(self->dev, cmd, arg));
	}
}

/* A caller of the future, whose additions are zero, is served. */
TEST_F(abi, longer_structure)
{
	struct {
		struct towpin_info info;
		__u64 more[8];
	} arg = { .info.size = sizeof(arg), };

	ASSERT_EQ(0, dev_ioctl(self->dev, TOWPIN_IOC_INFO, &arg));
	EXPECT_EQ(TOWPIN_ABI_VERSION, arg.info.abi_version);
	EXPECT_EQ(sizeof(arg), arg.info.size);
}

/* An answer that cannot be written undoes what was done. */
TEST_F(abi, unwritable_answer)
{
	char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct towpin_eventfd *event = (void *)map;
	struct towpin_attach *attach = (void *)map;
	struct towpin_register *reg = (void *)map;
	struct towpin_submit *submit = (void *)map;
	struct towpin_setup *setup = (void *)map;
	struct towpin_op op = { .opcode = TOWPIN_OP_NOP, };
	int fd = buf_create(self->dev, 4096), efd = eventfd(0, 0);

	ASSERT_LE(0, fd);
	*attach = (struct towpin_attach){ .size = sizeof(*attach), .fd = fd };
	ASSERT_EQ(0, mprotect(map, 4096, PROT_READ));
	EXPECT_EQ(-EFAULT, dev_ioctl(self->dev, TOWPIN_IOC_ATTACH, map));
	EXPECT_EQ(0, counter("handles"));

	ASSERT_EQ(0, mprotect(map, 4096, PROT_READ | PROT_WRITE));
	*reg = (struct towpin_register){
		.size = sizeof(*reg), .addr = (uintptr_t)map, .length = 4096,
		.flags = TOWPIN_REG_READ_ONLY,
	};
	ASSERT_EQ(0, mprotect(map, 4096, PROT_READ));
	EXPECT_EQ(-EFAULT, dev_ioctl(self->dev, TOWPIN_IOC_REGISTER, map));
	EXPECT_EQ(0, counter("registered_pages"));

	ASSERT_EQ(0, mprotect(map, 4096, PROT_READ | PROT_WRITE));
	*event = (struct towpin_eventfd){ .size = sizeof(*event), .fd = efd };
	ASSERT_EQ(0, mprotect(map, 4096, PROT_READ));
	EXPECT_EQ(-EFAULT, dev_ioctl(self->dev, TOWPIN_IOC_EVENTFD_ADD, map));
	EXPECT_EQ(0, counter("eventfds"));

	ASSERT_EQ(0, mprotect(map, 4096, PROT_READ | PROT_WRITE));
	*setup = (struct towpin_setup){ .size = sizeof(*setup), .entries = 1 };
	ASSERT_EQ(0, mprotect(map, 4096, PROT_READ));
	EXPECT_EQ(-EFAULT, dev_ioctl(self->dev, TOWPIN_IOC_SETUP, map));
	ASSERT_EQ(0, dev_setup(self->dev, 1, NULL));

	ASSERT_EQ(0, mprotect(map, 4096, PROT_READ | PROT_WRITE));
	*submit = (struct towpin_submit){
		.size = sizeof(*submit), .ops = (uintptr_t)&op, .nr = 1,
		.op_size = sizeof(op),
	};
	ASSERT_EQ(0, mprotect(map, 4096, PROT_READ));
	EXPECT_EQ(-EFAULT, dev_ioctl(self->dev, TOWPIN_IOC_SUBMIT, map));

	/* Nothing was reserved: the first handle and index are still free. */
	EXPECT_EQ(1, mem_attach(self->dev, fd));
	EXPECT_EQ(0, event_add(self->dev, efd));
	close(efd);
	close(fd);
	munmap(map, 4096);
}

TEST_HARNESS_MAIN

// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The provider of /dev/towpin: each function is its ioctl.
 *
 * Invariants: the records are mapped read-only and not into forked children, so
 * that a child keeps nothing of the context but a descriptor; close() returns
 * when no operation can touch the caller's memory any more.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "provider.h"
#include "towpin.h"

#define DEVICE	"/dev/towpin"

struct kmod {
	struct towi_provider p;
	int fd;
	void *map;
	size_t map_length;
};

static struct kmod *to_kmod(struct towi_provider *p)
{
	return (struct kmod *)((char *)p - offsetof(struct kmod, p));
}

static int call(struct towi_provider *p, unsigned long request, void *arg)
{
	int ret = ioctl(to_kmod(p)->fd, request, arg);

	return ret < 0 ? -errno : ret;
}

static int kmod_info(struct towi_provider *p, struct towpin_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	return call(p, TOWPIN_IOC_INFO, info);
}

static int kmod_buf_create(struct towi_provider *p, uint64_t length,
			   uint32_t flags, uint32_t node)
{
	struct towpin_buf_create arg = {
		.size = sizeof(arg),
		.flags = flags,
		.length = length,
		.node = node,
	};

	return call(p, TOWPIN_IOC_BUF_CREATE, &arg);
}

static int kmod_buf_derive(struct towi_provider *p, int fd, uint32_t rights)
{
	struct towpin_buf_derive arg = {
		.size = sizeof(arg),
		.fd = (uint32_t)fd,
		.rights = rights,
	};

	return call(p, TOWPIN_IOC_BUF_DERIVE, &arg);
}

static int kmod_buf_info(struct towi_provider *p, int fd,
			 struct towpin_buf_info *info)
{
	*info = (struct towpin_buf_info) {
		.size = sizeof(*info),
		.fd = (uint32_t)fd,
	};
	return call(p, TOWPIN_IOC_BUF_INFO, info);
}

static int kmod_attach(struct towi_provider *p, int fd,
		       struct towpin_attach *result)
{
	*result = (struct towpin_attach) {
		.size = sizeof(*result),
		.fd = (uint32_t)fd,
	};
	return call(p, TOWPIN_IOC_ATTACH, result);
}

static int kmod_register(struct towi_provider *p, uint64_t addr,
			 uint64_t length, uint32_t flags, uint32_t *handle)
{
	struct towpin_register arg = {
		.size = sizeof(arg),
		.flags = flags,
		.addr = addr,
		.length = length,
	};
	int err;

	err = call(p, TOWPIN_IOC_REGISTER, &arg);
	if (!err)
		*handle = arg.handle;
	return err;
}

static int kmod_detach(struct towi_provider *p, uint32_t handle, uint32_t flags)
{
	struct towpin_detach arg = {
		.size = sizeof(arg),
		.flags = flags,
		.handle = handle,
	};

	return call(p, TOWPIN_IOC_DETACH, &arg);
}

static int kmod_submit(struct towi_provider *p, const struct towpin_op *ops,
		       uint32_t nr, uint32_t *accepted)
{
	struct towpin_submit arg = {
		.size = sizeof(arg),
		.ops = (uintptr_t)ops,
		.nr = nr,
		.op_size = sizeof(*ops),
	};
	int err;

	err = call(p, TOWPIN_IOC_SUBMIT, &arg);
	*accepted = arg.accepted;
	return err;
}

static int kmod_wait(struct towi_provider *p, const uint32_t *slots,
		     uint32_t nr, uint32_t min, uint64_t deadline,
		     uint32_t *done)
{
	struct towpin_wait arg = {
		.size = sizeof(arg),
		.slots = (uintptr_t)slots,
		.nr = nr,
		.min = min,
		.deadline = deadline,
	};
	int err;

	err = call(p, TOWPIN_IOC_WAIT, &arg);
	*done = arg.done;
	return err;
}

static int kmod_eventfd_add(struct towi_provider *p, int fd)
{
	struct towpin_eventfd arg = {
		.size = sizeof(arg),
		.fd = (uint32_t)fd,
	};
	int err;

	err = call(p, TOWPIN_IOC_EVENTFD_ADD, &arg);
	return err ? err : (int)arg.index;
}

static int kmod_eventfd_del(struct towi_provider *p, uint32_t index)
{
	struct towpin_eventfd arg = {
		.size = sizeof(arg),
		.index = index,
	};

	return call(p, TOWPIN_IOC_EVENTFD_DEL, &arg);
}

static int kmod_fd(struct towi_provider *p)
{
	return to_kmod(p)->fd;
}

static void kmod_close(struct towi_provider *p, bool forked)
{
	struct kmod *k = to_kmod(p);
	uint32_t done;

	if (!forked && k->map) {
		/*
		 * The module would go on with what is in flight after close(2),
		 * and into registered memory that the caller frees next.
		 */
		while (kmod_wait(p, NULL, 0, p->entries, TOWI_DEADLINE_NEVER,
				 &done) == -EINTR)
			;
		munmap(k->map, k->map_length);
	}
	close(k->fd);
	free(k);
}

static const struct towi_provider_ops kmod_ops = {
	.info = kmod_info,
	.buf_create = kmod_buf_create,
	.buf_derive = kmod_buf_derive,
	.buf_info = kmod_buf_info,
	.attach = kmod_attach,
	.register_mem = kmod_register,
	.detach = kmod_detach,
	.submit = kmod_submit,
	.wait = kmod_wait,
	.eventfd_add = kmod_eventfd_add,
	.eventfd_del = kmod_eventfd_del,
	.fd = kmod_fd,
	.close = kmod_close,
};

static void explain_open(int err, char *reason, size_t size)
{
	switch (err) {
	case ENOENT:
	case ENODEV:
	case ENXIO:
		snprintf(reason, size,
			 DEVICE " is not there: load the module with "
			 "`modprobe towpin`");
		break;
	case EACCES:
	case EPERM:
		snprintf(reason, size,
			 DEVICE " is not for this user: add it to the group "
			 "with `usermod -aG towpin USER` and log in again");
		break;
	default:
		snprintf(reason, size, DEVICE " cannot be opened: %s",
			 strerror(err));
		break;
	}
}

static int setup(struct kmod *k, uint32_t entries)
{
	struct towpin_setup arg = { .size = sizeof(arg), .entries = entries };
	void *map;
	int err;

	err = call(&k->p, TOWPIN_IOC_SETUP, &arg);
	if (err)
		return err;
	map = mmap(NULL, arg.records_length, PROT_READ, MAP_SHARED, k->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	k->map = map;
	k->map_length = arg.records_length;
	k->p.records = map;
	k->p.entries = entries;
	madvise(map, k->map_length, MADV_DONTFORK);
	return 0;
}

int towi_kmod_open(const struct tow_open_opts *opts, struct towi_provider **p,
		   char *reason, size_t reason_size)
{
	struct towpin_info info;
	struct kmod *k;
	int err;

	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	k->p.ops = &kmod_ops;
	k->fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (k->fd < 0) {
		err = -errno;
		explain_open(-err, reason, reason_size);
		free(k);
		return err;
	}

	err = kmod_info(&k->p, &info);
	if (!err && info.abi_version != TOWPIN_ABI_VERSION) {
		snprintf(reason, reason_size,
			 "the loaded module speaks ABI version %u, this "
			 "library %u: install the same version of both and "
			 "load the module again",
			 info.abi_version, TOWPIN_ABI_VERSION);
		err = -EPROTO;
	} else if (!err) {
		err = setup(k, opts->entries);
	}
	if (err) {
		if (err != -EPROTO)
			snprintf(reason, reason_size,
				 DEVICE " refused a queue of %u entries: %s",
				 opts->entries, strerror(-err));
		kmod_close(&k->p, false);
		return err;
	}
	*p = &k->p;
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/towpin: the device, its ioctl table, and the module's beginning and end.
 *
 * Invariants: a handler is given a copy of the caller's structure that was read
 * once, is as long as ours, and is zero where the caller had less. The module
 * stays while a file of the device or a dma-buf of ours is open; headless
 * contexts do not keep it, it waits for them.
 */
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>
#include "engine.h"
#include "trace.h"

union towpin_arg {
	struct towpin_info info;
	struct towpin_buf_create buf_create;
	struct towpin_buf_derive buf_derive;
	struct towpin_buf_info buf_info;
	struct towpin_attach attach;
	struct towpin_register reg;
	struct towpin_detach detach;
	struct towpin_setup setup;
	struct towpin_submit submit;
	struct towpin_wait wait;
	struct towpin_eventfd eventfd;
};

struct towpin_ioctl {
	long (*handler)(struct towpin_ctx *ctx, void *arg,
			const struct towpin_uarg *uarg);
	size_t first_size;		/* of the structure's first version */
	size_t size;			/* now */
};

#define TOWPIN_IOCTL(_nr, _handler, _type, _last)			\
	[_IOC_NR(TOWPIN_IOC_##_nr)] = {					\
		.handler = towpin_ioctl_##_handler,			\
		.first_size = offsetofend(struct _type, _last),		\
		.size = sizeof(struct _type),				\
	}

static const struct towpin_ioctl towpin_ioctls[] = {
	TOWPIN_IOCTL(INFO, info, towpin_info, inflight),
	TOWPIN_IOCTL(BUF_CREATE, buf_create, towpin_buf_create, reserved),
	TOWPIN_IOCTL(BUF_DERIVE, buf_derive, towpin_buf_derive, rights),
	TOWPIN_IOCTL(BUF_INFO, buf_info, towpin_buf_info, huge_bytes),
	TOWPIN_IOCTL(ATTACH, attach, towpin_attach, reserved),
	TOWPIN_IOCTL(REGISTER, register, towpin_register, reserved),
	TOWPIN_IOCTL(DETACH, detach, towpin_detach, reserved),
	TOWPIN_IOCTL(SETUP, setup, towpin_setup, records_length),
	TOWPIN_IOCTL(SUBMIT, submit, towpin_submit, reserved),
	TOWPIN_IOCTL(WAIT, wait, towpin_wait, reserved),
	TOWPIN_IOCTL(EVENTFD_ADD, eventfd_add, towpin_eventfd, index),
	TOWPIN_IOCTL(EVENTFD_DEL, eventfd_del, towpin_eventfd, index),
};

/* Answer with what the caller's version of the structure has room for. */
int towpin_uarg_write(const struct towpin_uarg *uarg, const void *arg,
		      size_t size)
{
	return copy_to_user(uarg->ptr, arg, min(size, uarg->size)) ? -EFAULT : 0;
}

long towpin_ioctl_info(struct towpin_ctx *ctx, void *arg,
		       const struct towpin_uarg *uarg)
{
	struct towpin_queue *queue = towpin_ctx_queue(ctx);
	struct towpin_info *info = arg;

	if (info->flags)
		return -EINVAL;
	info->abi_version = TOWPIN_ABI_VERSION;
	info->engines = BIT(TOWPIN_ENGINE_INLINE) | BIT(TOWPIN_ENGINE_CPU);
	info->opcodes = towpin_desc_opcodes();
	info->max_entries = TOWPIN_MAX_ENTRIES;
	info->max_handles = TOWPIN_MAX_HANDLES;
	info->max_eventfds = TOWPIN_MAX_EVENTFDS;
	info->inline_max = towpin_engine_inline_max();
	info->max_length = TOWPIN_MAX_LENGTH;
	info->entries = queue ? queue->entries : 0;
	info->inflight = atomic_read(&ctx->inflight);
	return towpin_uarg_write(uarg, info, sizeof(*info));
}

static long towpin_ioctl_call(struct towpin_ctx *ctx,
			      const struct towpin_ioctl *ioctl,
			      void __user *user)
{
	struct towpin_uarg uarg = { .ptr = user };
	union towpin_arg arg __uninitialized;	/* but for what is copied in */
	u32 size;
	int ret;

	if (get_user(size, (u32 __user *)user))
		return -EFAULT;
	if (size < ioctl->first_size)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	/* The usual size of the usual ioctl: spare it the general copy's checks. */
	if (size == sizeof(arg.submit) && ioctl->size == sizeof(arg.submit))
		ret = copy_from_user(&arg, user, sizeof(arg.submit)) ? -EFAULT : 0;
	else
		ret = copy_struct_from_user(&arg, ioctl->size, user, size);
	if (ret)
		return ret;
	uarg.size = size;
	/* It was read again, and may differ: answer what was acted on. */
	arg.info.size = size;
	return ioctl->handler(ctx, &arg, &uarg);
}

static long towpin_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct towpin_ctx *ctx = file->private_data;
	unsigned int nr = _IOC_NR(cmd);
	long ret;

	if (nr >= ARRAY_SIZE(towpin_ioctls) ||
	    cmd != _IO(TOWPIN_IOC_MAGIC, nr))
		return -ENOTTY;
	nr = array_index_nospec(nr, ARRAY_SIZE(towpin_ioctls));
	ret = towpin_ioctl_call(ctx, &towpin_ioctls[nr], (void __user *)arg);
	if (ret < 0)
		trace_towpin_error(ctx->id, nr, ret);
	return ret;
}

static const struct file_operations towpin_fops = {
	.owner = THIS_MODULE,
	.open = towpin_open,
	.release = towpin_release,
	.unlocked_ioctl = towpin_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = towpin_mmap,
	.poll = towpin_poll,
	.read = towpin_read,
};

static struct miscdevice towpin_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "towpin",
	.fops = &towpin_fops,
	.mode = 0660,
};

/* For the attachments to other exporters; it does no DMA. */
struct device *towpin_device(void)
{
	return towpin_misc.this_device;
}

static int __init towpin_init(void)
{
	int ret;

	ret = towpin_engine_cpu_init();
	if (ret)
		return ret;
	towpin_counter_init();
	/* Last: from here on it can be opened. */
	ret = misc_register(&towpin_misc);
	if (ret) {
		towpin_counter_exit();
		towpin_engine_cpu_exit();
	}
	return ret;
}

/* Nothing is open; descriptors of closed contexts may still be out. */
static void __exit towpin_exit(void)
{
	misc_deregister(&towpin_misc);
	towpin_engine_cpu_exit();
	towpin_counter_exit();
}

module_init(towpin_init);
module_exit(towpin_exit);

MODULE_DESCRIPTION("Pinned zero-copy buffers and offloaded memory operations");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
TOWPIN_IMPORT_NS(DMA_BUF);

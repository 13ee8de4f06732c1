/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between the kernels that one source serves (6.1 to 6.13+).
 * Force-included by Kbuild, and the only file with conditions on a version or
 * a feature: the rest is written for the newest kernel.
 */
#ifndef TOWPIN_COMPAT_H
#define TOWPIN_COMPAT_H

/* Here because the headers below bring in printk.h. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/crc32c.h>
#include <linux/dma-buf.h>
#include <linux/eventfd.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/version.h>

#if defined(CONFIG_HIGHMEM) || !defined(CONFIG_64BIT)
#error "towpin needs a 64-bit kernel: it reaches all memory by the direct map"
#endif

/* 6.3: vm_flags became read-only to drivers. */
#ifndef TOWPIN_HAVE_VM_FLAGS_SET
static inline void vm_flags_clear(struct vm_area_struct *vma,
				  unsigned long flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/* 6.2: the locking of dma_buf_vmap() moved into an _unlocked variant. */
#ifndef TOWPIN_HAVE_DMA_BUF_UNLOCKED
static inline int dma_buf_vmap_unlocked(struct dma_buf *dmabuf,
					struct iosys_map *map)
{
	return dma_buf_vmap(dmabuf, map);
}

static inline void dma_buf_vunmap_unlocked(struct dma_buf *dmabuf,
					   struct iosys_map *map)
{
	dma_buf_vunmap(dmabuf, map);
}
#endif

/*
 * 6.2: a long-term pin for reading unshares every page that is shared
 * copy-on-write; before, only anonymous ones.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
#define TOWPIN_GUP_UNSHARE 0
#else
#define TOWPIN_GUP_UNSHARE (FOLL_WRITE | FOLL_FORCE)
#endif

/* 6.8: a name for what compilers offer against clearing stack variables. */
#ifndef __uninitialized
#if __has_attribute(__uninitialized__)
#define __uninitialized __attribute__((__uninitialized__))
#else
#define __uninitialized
#endif
#endif

/* 6.8: the count, always 1, is gone. */
static inline void towpin_eventfd_signal(struct eventfd_ctx *ctx)
{
#ifdef TOWPIN_HAVE_EVENTFD_SIGNAL_1
	eventfd_signal(ctx);
#else
	eventfd_signal(ctx, 1);
#endif
}

/* 6.13: namespaces are strings. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define TOWPIN_IMPORT_NS(ns) MODULE_IMPORT_NS(#ns)
#else
#define TOWPIN_IMPORT_NS(ns) MODULE_IMPORT_NS(ns)
#endif

/*
 * Copy with stores that pass the caches by. memcpy_flushcache() itself is not
 * exported everywhere it is inlined from.
 */
static inline void towpin_memcpy_nocache(void *dst, const void *src, size_t len)
{
#if defined(CONFIG_X86_64) && defined(CONFIG_ARCH_HAS_UACCESS_FLUSHCACHE)
	__memcpy_flushcache(dst, src, len);
	/* Order those stores before a release store that follows. */
	wmb();
#else
	memcpy(dst, src, len);
#endif
}

#endif /* TOWPIN_COMPAT_H */

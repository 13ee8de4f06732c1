/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What the public calls need of a provider, at the level of the kernel's
 * interface: each function means what the ioctl of the same name means in
 * linux/towpin.h, with the same errors.
 *
 * Invariants: results are 0 (or a descriptor, or an index) or a negative errno;
 * no function runs beside close() or after it, and none but close() in a forked
 * child. A provider knows nothing of tokens and struct tow_buf.
 */
#ifndef TOWI_PROVIDER_H
#define TOWI_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/towpin.h>

struct tow_open_opts;
struct towi_provider;

#define TOWI_DEADLINE_LOOK	0
#define TOWI_DEADLINE_NEVER	UINT64_MAX

struct towi_provider_ops {
	int (*info)(struct towi_provider *p, struct towpin_info *info);
	int (*buf_create)(struct towi_provider *p, uint64_t length,
			  uint32_t flags, uint32_t node);
	int (*buf_derive)(struct towi_provider *p, int fd, uint32_t rights);
	int (*buf_info)(struct towi_provider *p, int fd,
			struct towpin_buf_info *info);
	int (*attach)(struct towi_provider *p, int fd,
		      struct towpin_attach *result);
	int (*register_mem)(struct towi_provider *p, uint64_t addr,
			    uint64_t length, uint32_t flags, uint32_t *handle);
	int (*detach)(struct towi_provider *p, uint32_t handle, uint32_t flags);
	int (*submit)(struct towi_provider *p, const struct towpin_op *ops,
		      uint32_t nr, uint32_t *accepted);
	int (*wait)(struct towi_provider *p, const uint32_t *slots, uint32_t nr,
		    uint32_t min, uint64_t deadline, uint32_t *done);
	int (*eventfd_add)(struct towi_provider *p, int fd);
	int (*eventfd_del)(struct towi_provider *p, uint32_t index);
	int (*fd)(struct towi_provider *p);

	/*
	 * Cancels or finishes what is in flight: no byte is written and no
	 * eventfd signalled afterwards. With @forked the caller is a child that
	 * inherited @p: only its own copy of memory and descriptors goes.
	 */
	void (*close)(struct towi_provider *p, bool forked);
};

struct towi_provider {
	const struct towi_provider_ops *ops;
	const struct towpin_record *records;	/* one a slot */
	uint32_t entries;			/* slots */
};

/* Both want @opts complete: no zero that means a default. */
int towi_kmod_open(const struct tow_open_opts *opts, struct towi_provider **p,
		   char *reason, size_t reason_size);
int towi_user_open(const struct tow_open_opts *opts, struct towi_provider **p);

#endif /* TOWI_PROVIDER_H */

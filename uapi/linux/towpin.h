/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * towpin: pinned buffers and offloaded memory operations.
 *
 * This is the whole interface of /dev/towpin. Rules that hold throughout:
 *
 * - Every ioctl argument begins with @size (bytes, set by the caller to the
 *   size of the structure it was compiled with) and @flags. A structure only
 *   grows at its end: a newer caller's extra bytes must be zero (else E2BIG),
 *   an older caller's missing bytes read as zero.
 * - Unknown flags and non-zero reserved fields fail with EINVAL.
 * - Layouts are the same for 32-bit and 64-bit callers.
 * - Lengths and offsets are in bytes, times in nanoseconds of CLOCK_MONOTONIC.
 * - Calls are safe from any number of threads of the processes that share
 *   the open file.
 *
 * Errors common to all ioctls: EFAULT (the argument is not readable, or a
 * result not writable), EINVAL (see above, or @size below the first version of
 * the structure), E2BIG (see above), ENOTTY (unknown ioctl). Those of a single
 * call are listed with it.
 *
 * open(2) needs O_RDWR (EACCES otherwise): the file is one context, that is
 * one table of memory handles and one queue. It ends with the last reference to
 * the open file, mappings of the records included.
 */
#ifndef _UAPI_LINUX_TOWPIN_H
#define _UAPI_LINUX_TOWPIN_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define TOWPIN_ABI_VERSION	1

/*
 * 0xF7 is in no row of Documentation/userspace-api/ioctl/ioctl-number.rst and
 * in no _IO*() of the 6.1 and 6.12 sources. The size is in the argument, so the
 * number does not encode it.
 */
#define TOWPIN_IOC_MAGIC	0xF7
#define TOWPIN_IOC_INFO		_IO(TOWPIN_IOC_MAGIC, 0x00)
#define TOWPIN_IOC_BUF_CREATE	_IO(TOWPIN_IOC_MAGIC, 0x01)
#define TOWPIN_IOC_BUF_DERIVE	_IO(TOWPIN_IOC_MAGIC, 0x02)
#define TOWPIN_IOC_BUF_INFO	_IO(TOWPIN_IOC_MAGIC, 0x03)
#define TOWPIN_IOC_ATTACH	_IO(TOWPIN_IOC_MAGIC, 0x04)
#define TOWPIN_IOC_REGISTER	_IO(TOWPIN_IOC_MAGIC, 0x05)
#define TOWPIN_IOC_DETACH	_IO(TOWPIN_IOC_MAGIC, 0x06)
#define TOWPIN_IOC_SETUP	_IO(TOWPIN_IOC_MAGIC, 0x07)
#define TOWPIN_IOC_SUBMIT	_IO(TOWPIN_IOC_MAGIC, 0x08)
#define TOWPIN_IOC_WAIT		_IO(TOWPIN_IOC_MAGIC, 0x09)
#define TOWPIN_IOC_EVENTFD_ADD	_IO(TOWPIN_IOC_MAGIC, 0x0a)
#define TOWPIN_IOC_EVENTFD_DEL	_IO(TOWPIN_IOC_MAGIC, 0x0b)

#define TOWPIN_MAX_ENTRIES	4096		/* queue slots of a context */
#define TOWPIN_MAX_HANDLES	65535		/* memory handles of a context */
#define TOWPIN_MAX_EVENTFDS	4096		/* eventfds of a context */
#define TOWPIN_MAX_LENGTH	(1ULL << 40)	/* of a buffer and an operation */

#define TOWPIN_RIGHT_READ	(1U << 0)	/* source; mmap PROT_READ */
#define TOWPIN_RIGHT_WRITE	(1U << 1)	/* destination; PROT_WRITE */

/* Who moved the bytes (record.engine), and a bit each in info.engines. */
#define TOWPIN_ENGINE_NONE	0	/* no engine: refused or cancelled */
#define TOWPIN_ENGINE_INLINE	1	/* the submitter's own context */
#define TOWPIN_ENGINE_CPU	2	/* a kernel worker */

/**
 * struct towpin_info - TOWPIN_IOC_INFO: what this module can do
 * @size: sizeof(struct towpin_info)
 * @flags: must be 0
 * @abi_version: out, TOWPIN_ABI_VERSION of the module
 * @engines: out, bit (1 << TOWPIN_ENGINE_*) for each engine at hand
 * @opcodes: out, bit (1 << TOWPIN_OP_*) for each operation known
 * @max_entries: out, the most queue slots that SETUP grants
 * @max_handles: out, the most memory handles a context holds
 * @max_eventfds: out, the most eventfds a context holds
 * @inline_max: out, bytes up to which an operation runs inside SUBMIT
 * @max_length: out, the longest buffer and operation, bytes
 * @entries: out, queue slots of this context, 0 before SETUP
 * @inflight: out, operations of this context not yet complete
 */
struct towpin_info {
	__u32 size;
	__u32 flags;
	__u32 abi_version;
	__u32 engines;
	__aligned_u64 opcodes;
	__u32 max_entries;
	__u32 max_handles;
	__u32 max_eventfds;
	__u32 inline_max;
	__aligned_u64 max_length;
	__u32 entries;
	__u32 inflight;
};

#define TOWPIN_NODE_ANY		(~0U)		/* buf_create.node */
#define TOWPIN_BUF_SMALL_PAGES	(1U << 0)	/* do not try 2 MiB pages */

/**
 * struct towpin_buf_create - TOWPIN_IOC_BUF_CREATE: allocate a buffer
 * @size: sizeof(struct towpin_buf_create)
 * @flags: TOWPIN_BUF_*
 * @length: bytes, rounded up to whole pages; 1 .. TOWPIN_MAX_LENGTH
 * @node: NUMA node that the memory must come from, or TOWPIN_NODE_ANY
 * @reserved: must be 0
 *
 * The ioctl returns a dma-buf file descriptor (O_RDWR, close-on-exec). The
 * memory is zeroed and stays where it is until the last descriptor, mapping,
 * handle and device attachment is gone. It is charged to the caller's
 * RLIMIT_MEMLOCK (unless CAP_IPC_LOCK) and memory cgroup for as long. Of 2 MiB
 * pages as far as they can be had; mapped at an address that is congruent to
 * the offset modulo 2 MiB, they are mapped whole.
 *
 * Errors: EINVAL (length 0, no such node), EOVERFLOW (length above
 * TOWPIN_MAX_LENGTH), ENOMEM (RLIMIT_MEMLOCK, the memory cgroup or the memory
 * is exhausted), EMFILE, ENFILE, EINTR (killed while allocating).
 */
struct towpin_buf_create {
	__u32 size;
	__u32 flags;
	__aligned_u64 length;
	__u32 node;
	__u32 reserved;
};

/**
 * struct towpin_buf_derive - TOWPIN_IOC_BUF_DERIVE: same pages, fewer rights
 * @size: sizeof(struct towpin_buf_derive)
 * @flags: must be 0
 * @fd: a dma-buf descriptor of a towpin buffer
 * @rights: TOWPIN_RIGHT_READ, alone or with TOWPIN_RIGHT_WRITE
 *
 * The ioctl returns a new dma-buf descriptor over the same pages. Through one
 * without TOWPIN_RIGHT_WRITE a shared writable mapping, mprotect(2) to
 * writable, use as a destination and device writes are refused with EACCES.
 *
 * Errors: EBADF (@fd), EINVAL (not a towpin buffer, or rights that are empty
 * or unknown or lack READ), EACCES (a right that @fd itself has not), ENOMEM,
 * EMFILE, ENFILE.
 */
struct towpin_buf_derive {
	__u32 size;
	__u32 flags;
	__u32 fd;
	__u32 rights;
};

/**
 * struct towpin_buf_info - TOWPIN_IOC_BUF_INFO: what a buffer is made of
 * @size: sizeof(struct towpin_buf_info)
 * @flags: must be 0
 * @fd: a dma-buf descriptor of a towpin buffer
 * @rights: out, TOWPIN_RIGHT_* of this descriptor
 * @length: out, bytes, a multiple of the page size
 * @huge_bytes: out, how many of them are in 2 MiB pages
 *
 * Errors: EBADF (@fd), EINVAL (not a towpin buffer).
 */
struct towpin_buf_info {
	__u32 size;
	__u32 flags;
	__u32 fd;
	__u32 rights;
	__aligned_u64 length;
	__aligned_u64 huge_bytes;
};

/**
 * struct towpin_attach - TOWPIN_IOC_ATTACH: a handle for a dma-buf
 * @size: sizeof(struct towpin_attach)
 * @flags: must be 0
 * @fd: a towpin buffer or a dma-buf of any other exporter
 * @handle: out, the handle, 1 .. TOWPIN_MAX_HANDLES
 * @length: out, bytes
 * @rights: out, TOWPIN_RIGHT_* as @fd was opened
 * @reserved: must be 0
 *
 * The handle keeps the dma-buf alive: @fd may be closed. Operations on another
 * exporter's memory wait for its implicit fences, those on towpin buffers do not:
 * where a device has one mapped, DMA_BUF_IOCTL_SYNC waits.
 *
 * Errors: EBADF (@fd is not open), EINVAL (not a dma-buf), EOPNOTSUPP (the
 * exporter offers no CPU mapping that stays, or one of device memory), ENOSPC
 * (all handles are in use), ENOMEM.
 */
struct towpin_attach {
	__u32 size;
	__u32 flags;
	__u32 fd;
	__u32 handle;
	__aligned_u64 length;
	__u32 rights;
	__u32 reserved;
};

#define TOWPIN_REG_READ_ONLY	(1U << 0)	/* a source only */

/**
 * struct towpin_register - TOWPIN_IOC_REGISTER: a handle for own memory
 * @size: sizeof(struct towpin_register)
 * @flags: TOWPIN_REG_*
 * @addr: user address, any alignment
 * @length: bytes, any, at least 1
 * @handle: out, the handle, 1 .. TOWPIN_MAX_HANDLES
 * @reserved: must be 0
 *
 * The pages behind [@addr, @addr + @length) are pinned until DETACH, and each
 * is charged once to RLIMIT_MEMLOCK (unless CAP_IPC_LOCK), a huge page whole, as
 * it is kept whole; what two registrations name is charged twice. The handle
 * means those pages: unmapping the range does not end it, and a new mapping in
 * its place is not reached by it. Private anonymous, THP, hugetlb, memfd and
 * shmem memory, private file mappings, and mappings of towpin buffers can be
 * registered.
 *
 * Errors: EINVAL (@length 0), EOVERFLOW (the range wraps, or @length is above
 * TOWPIN_MAX_LENGTH), EFAULT (a part is not mapped, not writable without
 * TOWPIN_REG_READ_ONLY, or has no pages behind it, as a device's registers),
 * EOPNOTSUPP (a shared mapping of a file whose filesystem tracks writes),
 * ENOMEM (RLIMIT_MEMLOCK or memory exhausted), ENOSPC (handles), EINTR
 * (killed while pinning), EBUSY (a page cannot be moved to where it may stay),
 * EHWPOISON (a page's memory has failed).
 */
struct towpin_register {
	__u32 size;
	__u32 flags;
	__aligned_u64 addr;
	__aligned_u64 length;
	__u32 handle;
	__u32 reserved;
};

#define TOWPIN_DETACH_NOWAIT	(1U << 0)	/* EBUSY rather than wait */

/**
 * struct towpin_detach - TOWPIN_IOC_DETACH: give a handle back
 * @size: sizeof(struct towpin_detach)
 * @flags: TOWPIN_DETACH_*
 * @handle: from ATTACH or REGISTER
 * @reserved: must be 0
 *
 * The handle is gone at once for new operations; the call then waits until no
 * operation in flight names it, so that the memory is the caller's again when
 * it returns (the records of those operations may be written a moment later).
 * Only a fatal signal ends the wait early; then too the pages stay pinned until
 * those operations are done.
 *
 * Errors: ENOENT (no such handle), EBUSY (TOWPIN_DETACH_NOWAIT: in use by an
 * operation in flight, nothing changed), EINTR (killed).
 */
struct towpin_detach {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 reserved;
};

/**
 * struct towpin_setup - TOWPIN_IOC_SETUP: the queue of this context, once
 * @size: sizeof(struct towpin_setup)
 * @flags: must be 0
 * @entries: slots wanted, 1 .. TOWPIN_MAX_ENTRIES
 * @reserved: must be 0
 * @records_length: out, bytes of the records, whole pages
 *
 * Afterwards mmap(2) of the file at offset 0, of up to @records_length bytes,
 * with PROT_READ and MAP_SHARED shows the array of struct towpin_record, one a
 * slot. A writable mapping and mprotect(2) to writable fail with EACCES.
 *
 * Errors: EINVAL (@entries), EBUSY (already set up), ENOMEM.
 */
struct towpin_setup {
	__u32 size;
	__u32 flags;
	__u32 entries;
	__u32 reserved;
	__aligned_u64 records_length;
};

/* towpin_op.opcode; (s)ource, (d)estination and what the fields mean */
#define TOWPIN_OP_NOP		0	/* nothing: completes at once */
#define TOWPIN_OP_COPY		1	/* d = s; overlap as in memmove(3) */
#define TOWPIN_OP_FILL		2	/* d = 8-byte pattern in src_off */
#define TOWPIN_OP_COMPARE	3	/* s against d, both only read */
#define TOWPIN_OP_CRC32C	4	/* CRC-32C of s, continuing seed */
#define TOWPIN_OP_COPY_CRC	5	/* COPY, and the CRC-32C of what landed */

/* towpin_op.flags */
#define TOWPIN_F_STORE32	(1U << 0)	/* store 32-bit notify_value */
#define TOWPIN_F_STORE64	(1U << 1)	/* store 64-bit notify_value */
#define TOWPIN_F_EVENTFD	(1U << 2)	/* signal eventfd */

/* towpin_op.hint */
#define TOWPIN_HINT_NORMAL	0
#define TOWPIN_HINT_NOCACHE	1	/* write around the caches */

/**
 * struct towpin_op - one operation, 64 bytes
 * @opcode: TOWPIN_OP_*
 * @hint: TOWPIN_HINT_* for the destination of COPY and COPY_CRC, else 0
 * @slot: which record tells the result; its former operation must be complete
 * @flags: TOWPIN_F_*
 * @eventfd: index from EVENTFD_ADD if TOWPIN_F_EVENTFD, else 0
 * @src: handle read by COPY, COMPARE, CRC32C, COPY_CRC, else 0
 * @dst: handle written by COPY, FILL, COPY_CRC, read by COMPARE, else 0
 * @notify: handle written if TOWPIN_F_STORE32 or 64, else 0
 * @seed: CRC of what comes before (0 at the start), else 0
 * @src_off: offset in @src; for FILL the pattern; else 0
 * @dst_off: offset in @dst, else 0
 * @len: bytes, 1 .. TOWPIN_MAX_LENGTH; 0 for NOP
 * @notify_off: offset in @notify, else 0; the place must be aligned to the
 *	value's size
 * @notify_value: what to store, else 0; STORE32: below 2^32
 *
 * Operations in flight are not ordered among themselves. CRC-32C is that of
 * RFC 3720 appendix B.4: polynomial 0x1EDC6F41 reflected, inverted before and
 * after, so that feeding a result as the seed of the next piece continues it.
 * COPY is memmove(3) where source and destination are the same handle or the
 * same towpin buffer; for other aliases an overlap gives undefined bytes.
 *
 * An operation that succeeds stores @notify_value with release order after its
 * data. Whether it succeeds or not, its record is written next and the eventfd
 * signalled last: who is woken by the eventfd finds both.
 */
struct towpin_op {
	__u8 opcode;
	__u8 hint;
	__u16 slot;
	__u16 flags;
	__u16 eventfd;
	__u32 src;
	__u32 dst;
	__u32 notify;
	__u32 seed;
	__aligned_u64 src_off;
	__aligned_u64 dst_off;
	__aligned_u64 len;
	__aligned_u64 notify_off;
	__aligned_u64 notify_value;
};

/* towpin_record.status; bits 5:0 as a DSA's, bit 6 marks those of our own */
#define TOWPIN_ST_PENDING	0x00	/* in flight */
#define TOWPIN_ST_SUCCESS	0x01
#define TOWPIN_ST_UNUSED	0x40	/* no operation has used this slot yet */
#define TOWPIN_ST_ERROR		0x41	/* @result is the errno */

/**
 * struct towpin_record - result of the operation last submitted to a slot
 * @status: TOWPIN_ST_*; read it with acquire order before the rest
 * @result: COMPARE: 0 equal, 1 different; TOWPIN_ST_ERROR: errno, ECANCELED
 *	when the context was closed, or the submitter killed, first; else 0
 * @engine: TOWPIN_ENGINE_* that moved the bytes
 * @reserved: 0
 * @bytes_completed: low 32 bits of @bytes
 * @bytes: bytes done; COMPARE: offset of the first difference, or the length
 * @crc: CRC32C, COPY_CRC: the CRC in the low 32 bits; else 0
 * @op_id: the operation's id in the tracepoints, unique in this boot
 *
 * 32 bytes, aligned to 32. The first eight bytes and @crc lie where Intel DSA's
 * completion record has status, result, bytes completed and CRC (Intel Data
 * Streaming Accelerator Architecture Specification, section 5.4); @bytes lies in
 * the place of the fault address, which pinned memory does not need.
 */
struct towpin_record {
	__u8 status;
	__u8 result;
	__u8 engine;
	__u8 reserved;
	__u32 bytes_completed;
	__aligned_u64 bytes;
	__aligned_u64 crc;
	__aligned_u64 op_id;
};

/**
 * struct towpin_submit - TOWPIN_IOC_SUBMIT: start operations
 * @size: sizeof(struct towpin_submit)
 * @flags: must be 0
 * @ops: address of an array of struct towpin_op
 * @nr: how many, 1 .. TOWPIN_MAX_ENTRIES
 * @op_size: sizeof(struct towpin_op)
 * @accepted: out, how many of them, from the first, are in flight
 * @reserved: must be 0
 *
 * Each entry is read once, and checked and started in order. At the first that
 * is refused the call fails with that entry's error: @accepted operations before
 * it are in flight (or done), it and those after it were not touched. Short ones
 * (towpin_info.inline_max) run within the call.
 *
 * Errors: ENXIO (no SETUP yet), EINVAL (@nr, @op_size), EFAULT (the argument
 * cannot be written, or a part of @ops not read: then entries before it may be
 * refused as well), EINTR (killed); of an entry: EINVAL (opcode, hint, flags,
 * slot or eventfd out of range, length 0, unaligned notify_off, a field set that
 * its opcode does not use, both STORE flags), EOVERFLOW (length above
 * TOWPIN_MAX_LENGTH, or offset plus length wraps), ERANGE (offset plus length,
 * or the place of the notification, ends beyond the memory), ENOENT (no such
 * handle or eventfd), EACCES (the handle lacks the right), EAGAIN (the slot's
 * former operation is in flight; when all are, the queue is full: wait, then
 * submit again).
 */
struct towpin_submit {
	__u32 size;
	__u32 flags;
	__aligned_u64 ops;
	__u32 nr;
	__u32 op_size;
	__u32 accepted;
	__u32 reserved;
};

/**
 * struct towpin_wait - TOWPIN_IOC_WAIT: sleep until operations are complete
 * @size: sizeof(struct towpin_wait)
 * @flags: must be 0
 * @slots: address of an array of __u32 slot numbers; 0 with @nr 0
 * @nr: how many; 0 means all slots of the queue
 * @min: return when this many of them are not in flight, 1 .. @nr (or entries)
 * @deadline: CLOCK_MONOTONIC ns; 0 only looks, ~0 never ends
 * @done: out, how many of them are not in flight
 * @reserved: must be 0
 *
 * poll(2) of the file says POLLIN while there are completions that no read(2)
 * has taken, POLLOUT while not all slots are in flight. read(2) of 8 bytes takes
 * the number of completions since the last read (blocks for one unless
 * O_NONBLOCK: EAGAIN); a shorter buffer is EINVAL. Both may be used with epoll,
 * edge or level triggered. Before SETUP poll(2) says POLLERR.
 *
 * Errors: ENXIO (no SETUP yet), EINVAL (@nr, @min, a slot out of range), ETIME
 * (@deadline passed; @done is written), EINTR (a signal), EFAULT, ENOMEM.
 */
struct towpin_wait {
	__u32 size;
	__u32 flags;
	__aligned_u64 slots;
	__u32 nr;
	__u32 min;
	__aligned_u64 deadline;
	__u32 done;
	__u32 reserved;
};

/**
 * struct towpin_eventfd - TOWPIN_IOC_EVENTFD_ADD, TOWPIN_IOC_EVENTFD_DEL
 * @size: sizeof(struct towpin_eventfd)
 * @flags: must be 0
 * @fd: ADD: an eventfd, which may be closed afterwards; DEL: must be 0
 * @index: ADD: out, 0 .. TOWPIN_MAX_EVENTFDS - 1; DEL: which one
 *
 * Operations in flight still signal an eventfd that was deleted meanwhile.
 *
 * Errors: EBADF (@fd is not open), EINVAL (not an eventfd), ENOSPC (ADD: all
 * are in use), ENOENT (DEL: no such index), ENOMEM.
 */
struct towpin_eventfd {
	__u32 size;
	__u32 flags;
	__u32 fd;
	__u32 index;
};

#endif /* _UAPI_LINUX_TOWPIN_H */

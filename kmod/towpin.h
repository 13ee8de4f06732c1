/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * towpin: types that the files of the module share.
 *
 * Lifetimes. Everything is held by references, and no reference is ever taken
 * from user space's word alone:
 *
 *   open file ----> ctx <---- descriptor given to an engine
 *   ctx handle table ----> mem <---- descriptor (source, destination, notify)
 *   ctx eventfd table ---> event <--- descriptor
 *   mem ----> dma-buf file ----> buffer (ours) or a foreign exporter's memory
 *   mem ----> pins of user pages
 *   dma-buf file (descriptors, mappings, attachments) ----> buffer
 *
 * So pages cannot go while an engine may touch them: the descriptor holds the
 * mem until the engine has given it back through towpin_desc_complete(). A
 * context whose file is closed with descriptors out lives on until the last of
 * them returns ("headless"); module exit drains the engines, which ends those.
 *
 * Locks, outermost first:
 *   dma_resv of an importer or mmap_lock   (taken by callers of our dma-buf ops)
 *   buffer->lock       buffer->attachments, buffer->cpu_users
 * Handle and eventfd tables are xarrays: changed under their own lock, read
 * under RCU, an entry being valid only once its refcount was raised from
 * non-zero. Submission takes no lock at all, and none is held across pinning,
 * allocation or an access to user memory.
 */
#ifndef TOWPIN_KMOD_H
#define TOWPIN_KMOD_H

#include <linux/atomic.h>
#include <linux/dma-buf.h>
#include <linux/iosys-map.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <uapi/linux/towpin.h>

struct user_struct;

/* ---- counter.c: what exists, for debugfs; all zero when nothing is open ---- */

enum towpin_counter {
	TOWPIN_CNT_CONTEXTS,		/* headless ones included */
	TOWPIN_CNT_BUFFERS,
	TOWPIN_CNT_BUFFER_PAGES,
	TOWPIN_CNT_HANDLES,		/* those kept by descriptors included */
	TOWPIN_CNT_REGISTERED_PAGES,	/* pinned user pages */
	TOWPIN_CNT_CHARGED_PAGES,	/* in somebody's RLIMIT_MEMLOCK */
	TOWPIN_CNT_EVENTFDS,
	TOWPIN_CNT_INFLIGHT,		/* descriptors that an engine holds */
	TOWPIN_CNT_NR,
};

void towpin_count(enum towpin_counter counter, long delta);
void towpin_counter_init(void);
void towpin_counter_exit(void);

/* ---- charge.c ---- */

struct towpin_charge {
	struct user_struct *user;	/* NULL: not charged (CAP_IPC_LOCK) */
	unsigned long pages;
};

int towpin_charge(struct towpin_charge *charge, unsigned long pages);
int towpin_charge_more(struct towpin_charge *charge, unsigned long pages);
void towpin_uncharge(struct towpin_charge *charge);

/* ---- buffer.c: pages allocated by us ---- */

struct towpin_buffer {
	struct kref refs;		/* one a dma-buf */
	u32 id;				/* in tracepoints */
	unsigned long nr_pages;
	unsigned long nr_huge;		/* of them in 2 MiB pages */
	struct page **pages;		/* one entry per base page */
	struct towpin_charge charge;
	struct mutex lock;		/* the two below */
	struct list_head attachments;
	unsigned int cpu_users;		/* operations that touch the pages now */
};

struct towpin_buffer *towpin_buffer_create(u64 length, u32 node, u32 flags);
void towpin_buffer_get(struct towpin_buffer *buffer);
void towpin_buffer_put(struct towpin_buffer *buffer);

/* ---- dmabuf.c: a buffer as a dma-buf ---- */

int towpin_dmabuf_export(struct towpin_buffer *buffer, u32 rights);
struct towpin_buffer *towpin_dmabuf_buffer(struct dma_buf *dmabuf);
u32 towpin_dmabuf_rights(struct dma_buf *dmabuf);
void towpin_dmabuf_begin(struct towpin_buffer *buffer);
void towpin_dmabuf_end(struct towpin_buffer *buffer);

/* ---- mem.c, register.c: what a handle names ---- */

struct towpin_mem {
	refcount_t refs;		/* the table, and each descriptor */
	bool detached;			/* out of the table, somebody waits */
	u32 rights;			/* TOWPIN_RIGHT_* */
	u64 length;			/* bytes */
	/*
	 * Where the bytes are: in pages[], byte 0 at first_off of pages[0], or
	 * at vaddr when pages is NULL.
	 */
	struct page **pages;
	unsigned int first_off;
	void *vaddr;
	struct dma_buf *dmabuf;		/* NULL: registered user memory */
	struct towpin_buffer *buffer;	/* ours, kept by dmabuf; else NULL */
	struct dma_buf_attachment *attach;	/* foreign: keeps it in place */
	struct iosys_map map;		/* foreign: its vmap */
	unsigned long nr_pinned;	/* registered: pages pinned */
	struct towpin_charge charge;
	struct rcu_head rcu;
};

struct towpin_ctx;

struct towpin_mem *towpin_mem_lookup(struct towpin_ctx *ctx, u32 handle);
void towpin_mem_put(struct towpin_mem *mem);
void towpin_mem_put_all(struct towpin_mem **mems, unsigned int nr);
void towpin_mem_drop_all(struct towpin_ctx *ctx);
struct towpin_mem *towpin_mem_attach(int fd);
struct towpin_mem *towpin_mem_register(u64 addr, u64 length, u32 flags);
void towpin_mem_unpin(struct towpin_mem *mem);
int towpin_mem_begin_shared(struct towpin_mem *mem, enum dma_data_direction dir);
void towpin_mem_end_shared(struct towpin_mem *mem, enum dma_data_direction dir);

/*
 * The CPU is about to read (@dir DMA_FROM_DEVICE) or write. Registered memory is
 * the CPU's anyway, and our own buffers are unless a device is attached. 0, or 1,
 * which the end must be given, or a negative errno. May sleep.
 */
static inline int towpin_mem_begin_access(struct towpin_mem *mem,
					  enum dma_data_direction dir)
{
	if (!mem->dmabuf ||
	    (mem->buffer && list_empty_careful(&mem->buffer->attachments)))
		return 0;
	return towpin_mem_begin_shared(mem, dir);
}

static inline void towpin_mem_end_access(struct towpin_mem *mem,
					 enum dma_data_direction dir, int begun)
{
	if (begun)
		towpin_mem_end_shared(mem, dir);
}

/* ---- event.c ---- */

struct towpin_event {
	refcount_t refs;		/* the table, and each descriptor */
	struct eventfd_ctx *eventfd;
	struct rcu_head rcu;
};

struct towpin_event *towpin_event_lookup(struct towpin_ctx *ctx, u32 index);
void towpin_event_put(struct towpin_event *event);
void towpin_event_drop_all(struct towpin_ctx *ctx);

/* ---- desc.c: one operation on its way ---- */

struct towpin_desc {
	struct towpin_ctx *ctx;		/* a reference while an engine has it */
	struct towpin_mem *src;		/* references, NULL if not named */
	struct towpin_mem *dst;
	struct towpin_mem *notify;
	struct towpin_event *event;
	struct towpin_record *record;	/* the slot's, for good */
	struct work_struct work;	/* the cpu engine's */
	u64 id;
	u64 src_off;
	u64 dst_off;
	u64 len;
	u64 pattern;
	u64 notify_off;
	u64 notify_value;
	u32 seed;
	u16 slot;			/* which of the queue, for good */
	u16 flags;
	u8 opcode;
	u8 hint;
	u8 src_begun;			/* of towpin_mem_begin_access() */
	u8 dst_begun;

	/* the result, written by whoever executes it */
	u8 engine;
	u8 differs;
	int status;			/* 0 or a negative errno */
	u32 crc;
	u64 bytes;

	u64 submit_ns;			/* 0 unless somebody traces */
	u64 start_ns;
};

struct towpin_queue;

u64 towpin_desc_opcodes(void);
int towpin_desc_prepare(struct towpin_ctx *ctx, struct towpin_queue *queue,
			const struct towpin_op *op, struct towpin_desc **out);
void towpin_desc_complete(struct towpin_desc *desc);

/* ---- queue.c: slots and their records ---- */

struct towpin_queue {
	unsigned int entries;
	unsigned int nr_pages;
	struct towpin_desc *descs;	/* one a slot */
	struct page *pages[TOWPIN_MAX_ENTRIES *
			   sizeof(struct towpin_record) / PAGE_SIZE];
};

struct towpin_queue *towpin_queue_create(struct towpin_ctx *ctx,
					 unsigned int entries);
void towpin_queue_destroy(struct towpin_queue *queue);
int towpin_queue_mmap(struct towpin_queue *queue, struct vm_area_struct *vma);

static inline struct towpin_record *
towpin_queue_record(struct towpin_queue *queue, unsigned int slot)
{
	unsigned int per_page = PAGE_SIZE / sizeof(struct towpin_record);
	struct towpin_record *page = page_address(queue->pages[slot / per_page]);

	return page + slot % per_page;
}

/* ---- context.c: one open file ---- */

#define TOWPIN_LOW_HANDLES	32

struct towpin_ctx {
	refcount_t refs;		/* the file, each descriptor out */
	u32 id;				/* in tracepoints, and part of op ids */
	bool closing;			/* set once: engines need not finish */
	atomic_t inflight;		/* descriptors out */
	struct xarray mems;		/* handle -> mem */
	/* The same for the first handles, to be found without a walk. */
	struct towpin_mem __rcu *low_mems[TOWPIN_LOW_HANDLES];
	struct xarray events;		/* index -> event */
	struct towpin_queue *queue;	/* set once, then constant */
	atomic64_t seq;			/* operations ever accepted */
	atomic64_t completed;		/* operations ever completed */
	atomic64_t taken;		/* of them, told by read(2) */
	wait_queue_head_t wait;		/* woken after each completion */
};

int towpin_open(struct inode *inode, struct file *file);
int towpin_release(struct inode *inode, struct file *file);
int towpin_mmap(struct file *file, struct vm_area_struct *vma);
void towpin_ctx_get(struct towpin_ctx *ctx);
void towpin_ctx_put(struct towpin_ctx *ctx);

static inline struct towpin_queue *towpin_ctx_queue(struct towpin_ctx *ctx)
{
	/* Pairs with the release in SETUP; the queue never changes again. */
	return smp_load_acquire(&ctx->queue);
}

/* ---- main.c ---- */

struct device *towpin_device(void);

/* ---- ioctls; the argument is our copy, filled up with zeros ---- */

struct towpin_uarg {
	void __user *ptr;
	size_t size;			/* bytes of it that the caller knows */
};

int towpin_uarg_write(const struct towpin_uarg *uarg, const void *arg,
		      size_t size);

long towpin_ioctl_info(struct towpin_ctx *ctx, void *arg,
		       const struct towpin_uarg *uarg);
long towpin_ioctl_buf_create(struct towpin_ctx *ctx, void *arg,
			     const struct towpin_uarg *uarg);
long towpin_ioctl_buf_derive(struct towpin_ctx *ctx, void *arg,
			     const struct towpin_uarg *uarg);
long towpin_ioctl_buf_info(struct towpin_ctx *ctx, void *arg,
			   const struct towpin_uarg *uarg);
long towpin_ioctl_attach(struct towpin_ctx *ctx, void *arg,
			 const struct towpin_uarg *uarg);
long towpin_ioctl_register(struct towpin_ctx *ctx, void *arg,
			   const struct towpin_uarg *uarg);
long towpin_ioctl_detach(struct towpin_ctx *ctx, void *arg,
			 const struct towpin_uarg *uarg);
long towpin_ioctl_setup(struct towpin_ctx *ctx, void *arg,
			const struct towpin_uarg *uarg);
long towpin_ioctl_submit(struct towpin_ctx *ctx, void *arg,
			 const struct towpin_uarg *uarg);
long towpin_ioctl_wait(struct towpin_ctx *ctx, void *arg,
		       const struct towpin_uarg *uarg);
long towpin_ioctl_eventfd_add(struct towpin_ctx *ctx, void *arg,
			      const struct towpin_uarg *uarg);
long towpin_ioctl_eventfd_del(struct towpin_ctx *ctx, void *arg,
			      const struct towpin_uarg *uarg);

/* ---- wait.c ---- */

__poll_t towpin_poll(struct file *file, struct poll_table_struct *table);
ssize_t towpin_read(struct file *file, char __user *buf, size_t count,
		    loff_t *pos);

#endif /* TOWPIN_KMOD_H */

// SPDX-License-Identifier: GPL-2.0-only
/*
 * A buffer as a dma-buf: what a file descriptor of ours can do.
 *
 * Invariants: a dma-buf holds one reference on its buffer from export to
 * release; several dma-bufs may share a buffer, each with the rights that its
 * file mode says, for dma-buf files cannot be reopened with more. Mappings are
 * plain VMAs whose faults hand out page references, so that everything that
 * works on file memory works on them: long-term pins, O_DIRECT, fork, and 2 MiB
 * page tables. The VMA keeps the file, hence the buffer.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/fcntl.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "towpin.h"

/* A device that is attached, and where its engine sees the pages. */
struct towpin_attachment {
	struct list_head node;		/* in buffer->attachments */
	struct device *dev;
	struct sg_table sgt;
	bool mapped;			/* protected by buffer->lock */
};

static int towpin_dmabuf_attach(struct dma_buf *dmabuf,
				struct dma_buf_attachment *attach)
{
	struct towpin_buffer *buffer = dmabuf->priv;
	struct towpin_attachment *a;
	int ret;

	a = kzalloc(sizeof(*a), GFP_KERNEL);
	if (!a)
		return -ENOMEM;
	ret = sg_alloc_table_from_pages_segment(&a->sgt, buffer->pages,
						buffer->nr_pages, 0,
						dmabuf->size,
						dma_get_max_seg_size(attach->dev),
						GFP_KERNEL);
	if (ret) {
		kfree(a);
		return ret;
	}
	a->dev = attach->dev;
	attach->priv = a;
	mutex_lock(&buffer->lock);
	list_add(&a->node, &buffer->attachments);
	mutex_unlock(&buffer->lock);
	return 0;
}

static void towpin_dmabuf_detach(struct dma_buf *dmabuf,
				 struct dma_buf_attachment *attach)
{
	struct towpin_buffer *buffer = dmabuf->priv;
	struct towpin_attachment *a = attach->priv;

	mutex_lock(&buffer->lock);
	list_del(&a->node);
	mutex_unlock(&buffer->lock);
	sg_free_table(&a->sgt);
	kfree(a);
}

static struct sg_table *towpin_dmabuf_map(struct dma_buf_attachment *attach,
					  enum dma_data_direction dir)
{
	struct towpin_buffer *buffer = attach->dmabuf->priv;
	struct towpin_attachment *a = attach->priv;
	int ret;

	if (dir != DMA_TO_DEVICE &&
	    !(towpin_dmabuf_rights(attach->dmabuf) & TOWPIN_RIGHT_WRITE))
		return ERR_PTR(-EACCES);

	mutex_lock(&buffer->lock);
	ret = dma_map_sgtable(a->dev, &a->sgt, dir, 0);
	if (!ret)
		a->mapped = true;
	mutex_unlock(&buffer->lock);
	return ret ? ERR_PTR(ret) : &a->sgt;
}

static void towpin_dmabuf_unmap(struct dma_buf_attachment *attach,
				struct sg_table *sgt,
				enum dma_data_direction dir)
{
	struct towpin_buffer *buffer = attach->dmabuf->priv;
	struct towpin_attachment *a = attach->priv;

	mutex_lock(&buffer->lock);
	a->mapped = false;
	dma_unmap_sgtable(a->dev, sgt, dir, 0);
	mutex_unlock(&buffer->lock);
}

/* Hand the pages between the CPU and the devices that have them mapped. */
static void towpin_dmabuf_sync(struct towpin_buffer *buffer,
			       enum dma_data_direction dir, bool for_cpu)
{
	struct towpin_attachment *a;

	lockdep_assert_held(&buffer->lock);
	list_for_each_entry(a, &buffer->attachments, node) {
		if (!a->mapped)
			continue;
		if (for_cpu)
			dma_sync_sgtable_for_cpu(a->dev, &a->sgt, dir);
		else
			dma_sync_sgtable_for_device(a->dev, &a->sgt, dir);
	}
}

/*
 * An operation is about to touch the pages. Where the device has copies of them
 * (bounce buffers), taking them over once more while another operation writes
 * would lose what it wrote: so the first one takes them over, and the last one
 * gives them back.
 */
void towpin_dmabuf_begin(struct towpin_buffer *buffer)
{
	mutex_lock(&buffer->lock);
	if (!buffer->cpu_users++)
		towpin_dmabuf_sync(buffer, DMA_BIDIRECTIONAL, true);
	mutex_unlock(&buffer->lock);
}

void towpin_dmabuf_end(struct towpin_buffer *buffer)
{
	mutex_lock(&buffer->lock);
	if (!--buffer->cpu_users)
		towpin_dmabuf_sync(buffer, DMA_BIDIRECTIONAL, false);
	mutex_unlock(&buffer->lock);
}

/* On behalf of user space (DMA_BUF_IOCTL_SYNC) or of an importer. */
static int towpin_dmabuf_begin_cpu_access(struct dma_buf *dmabuf,
					  enum dma_data_direction dir)
{
	struct towpin_buffer *buffer = dmabuf->priv;

	mutex_lock(&buffer->lock);
	if (!buffer->cpu_users)
		towpin_dmabuf_sync(buffer, dir, true);
	mutex_unlock(&buffer->lock);
	return 0;
}

static int towpin_dmabuf_end_cpu_access(struct dma_buf *dmabuf,
					enum dma_data_direction dir)
{
	struct towpin_buffer *buffer = dmabuf->priv;

	mutex_lock(&buffer->lock);
	towpin_dmabuf_sync(buffer, dir, false);
	mutex_unlock(&buffer->lock);
	return 0;
}

static int towpin_dmabuf_vmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
	struct towpin_buffer *buffer = dmabuf->priv;
	void *vaddr;

	vaddr = vmap(buffer->pages, buffer->nr_pages, VM_MAP, PAGE_KERNEL);
	if (!vaddr)
		return -ENOMEM;
	iosys_map_set_vaddr(map, vaddr);
	return 0;
}

static void towpin_dmabuf_vunmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
	vunmap(map->vaddr);
	iosys_map_clear(map);
}

static vm_fault_t towpin_dmabuf_fault(struct vm_fault *vmf)
{
	struct towpin_buffer *buffer = vmf->vma->vm_private_data;

	/* mremap(2) can grow a mapping past the end. */
	if (vmf->pgoff >= buffer->nr_pages)
		return VM_FAULT_SIGBUS;
	vmf->page = buffer->pages[vmf->pgoff];
	get_page(vmf->page);
	return 0;
}

static const struct vm_operations_struct towpin_dmabuf_vm_ops = {
	.fault = towpin_dmabuf_fault,
};

/* The core has checked the range, and the protection against the file mode. */
static int towpin_dmabuf_mmap(struct dma_buf *dmabuf,
			      struct vm_area_struct *vma)
{
	vma->vm_private_data = dmabuf->priv;
	vma->vm_ops = &towpin_dmabuf_vm_ops;
	return 0;
}

static void towpin_dmabuf_release(struct dma_buf *dmabuf)
{
	towpin_buffer_put(dmabuf->priv);
}

#define TOWPIN_DMABUF_OPS_COMMON					\
	.attach = towpin_dmabuf_attach,					\
	.detach = towpin_dmabuf_detach,					\
	.map_dma_buf = towpin_dmabuf_map,				\
	.unmap_dma_buf = towpin_dmabuf_unmap,				\
	.begin_cpu_access = towpin_dmabuf_begin_cpu_access,		\
	.end_cpu_access = towpin_dmabuf_end_cpu_access,			\
	.mmap = towpin_dmabuf_mmap,					\
	.release = towpin_dmabuf_release

static const struct dma_buf_ops towpin_dmabuf_ops = {
	TOWPIN_DMABUF_OPS_COMMON,
	.vmap = towpin_dmabuf_vmap,
	.vunmap = towpin_dmabuf_vunmap,
};

/*
 * An importer may write through a kernel mapping without having said so, and one
 * that is read-only would make it oops: there is none without the right to write.
 */
static const struct dma_buf_ops towpin_dmabuf_read_only_ops = {
	TOWPIN_DMABUF_OPS_COMMON,
};

/* NULL: not one of ours. The buffer lives as long as the dma-buf. */
struct towpin_buffer *towpin_dmabuf_buffer(struct dma_buf *dmabuf)
{
	if (dmabuf->ops != &towpin_dmabuf_ops &&
	    dmabuf->ops != &towpin_dmabuf_read_only_ops)
		return NULL;
	return dmabuf->priv;
}

u32 towpin_dmabuf_rights(struct dma_buf *dmabuf)
{
	fmode_t mode = dmabuf->file->f_mode;

	return (mode & FMODE_READ ? TOWPIN_RIGHT_READ : 0) |
	       (mode & FMODE_WRITE ? TOWPIN_RIGHT_WRITE : 0);
}

/* A new descriptor over @buffer, which takes a reference of its own. */
int towpin_dmabuf_export(struct towpin_buffer *buffer, u32 rights)
{
	bool writable = rights & TOWPIN_RIGHT_WRITE;
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *dmabuf;
	int fd;

	info.ops = writable ? &towpin_dmabuf_ops : &towpin_dmabuf_read_only_ops;
	info.size = (size_t)buffer->nr_pages << PAGE_SHIFT;
	info.flags = writable ? O_RDWR : O_RDONLY;
	info.priv = buffer;

	towpin_buffer_get(buffer);
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf)) {
		towpin_buffer_put(buffer);
		return PTR_ERR(dmabuf);
	}
	fd = dma_buf_fd(dmabuf, O_CLOEXEC);
	if (fd < 0)
		dma_buf_put(dmabuf);	/* its release puts the buffer */
	return fd;
}

long towpin_ioctl_buf_derive(struct towpin_ctx *ctx, void *arg,
			     const struct towpin_uarg *uarg)
{
	const u32 all = TOWPIN_RIGHT_READ | TOWPIN_RIGHT_WRITE;
	struct towpin_buf_derive *derive = arg;
	struct towpin_buffer *buffer;
	struct dma_buf *dmabuf;
	long ret;

	if (derive->flags || derive->rights & ~all ||
	    !(derive->rights & TOWPIN_RIGHT_READ))
		return -EINVAL;
	dmabuf = dma_buf_get(derive->fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	buffer = towpin_dmabuf_buffer(dmabuf);
	if (!buffer)
		ret = -EINVAL;
	else if (derive->rights & ~towpin_dmabuf_rights(dmabuf))
		ret = -EACCES;
	else
		ret = towpin_dmabuf_export(buffer, derive->rights);
	dma_buf_put(dmabuf);
	return ret;
}

long towpin_ioctl_buf_info(struct towpin_ctx *ctx, void *arg,
			   const struct towpin_uarg *uarg)
{
	struct towpin_buf_info *info = arg;
	struct towpin_buffer *buffer;
	struct dma_buf *dmabuf;

	if (info->flags)
		return -EINVAL;
	dmabuf = dma_buf_get(info->fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	buffer = towpin_dmabuf_buffer(dmabuf);
	if (buffer) {
		info->rights = towpin_dmabuf_rights(dmabuf);
		info->length = dmabuf->size;
		info->huge_bytes = (u64)buffer->nr_huge << PAGE_SHIFT;
	}
	dma_buf_put(dmabuf);
	return buffer ? towpin_uarg_write(uarg, info, sizeof(*info)) : -EINVAL;
}

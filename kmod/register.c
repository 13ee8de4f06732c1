// SPDX-License-Identifier: GPL-2.0-only
/*
 * User memory behind a handle: pinned for good (FOLL_LONGTERM), so that it
 * neither moves nor goes while an engine may touch it, whatever its owner does to
 * the mapping meanwhile. Pages are charged before they are pinned.
 */
#include <linux/backing-dev.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include "towpin.h"

/* Pages pinned between two looks at the signals. */
#define TOWPIN_PIN_BATCH 1024UL

/*
 * Writing to a file's pages behind the back of a filesystem that tracks writes
 * loses data. 6.12 refuses such pins itself; this makes 6.1 do the same and
 * gives a telling error on both. A mapping exchanged after this look is caught
 * by 6.12 and, on 6.1, no worse than what other pinning drivers allow.
 */
static bool towpin_vma_tracks_writes(struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_SHARED) || vma->vm_flags & VM_PFNMAP ||
	    !vma->vm_file)
		return false;
	if (vma->vm_ops && (vma->vm_ops->page_mkwrite ||
			    vma->vm_ops->pfn_mkwrite))
		return true;
	return vma->vm_file->f_mapping &&
	       mapping_can_writeback(vma->vm_file->f_mapping);
}

static int towpin_check_vmas(unsigned long start, unsigned long end)
{
	struct mm_struct *mm = current->mm;
	VMA_ITERATOR(vmi, mm, start);
	struct vm_area_struct *vma;
	int ret = 0;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	for_each_vma_range(vmi, vma, end) {
		if (towpin_vma_tracks_writes(vma)) {
			ret = -EOPNOTSUPP;
			break;
		}
	}
	mmap_read_unlock(mm);
	return ret;
}

void towpin_mem_unpin(struct towpin_mem *mem)
{
	bool dirty = mem->rights & TOWPIN_RIGHT_WRITE;
	unsigned long done = 0;

	while (done < mem->nr_pinned) {
		unsigned long batch = min(mem->nr_pinned - done,
					  TOWPIN_PIN_BATCH);

		unpin_user_pages_dirty_lock(mem->pages + done, batch, dirty);
		done += batch;
		cond_resched();
	}
	towpin_count(TOWPIN_CNT_REGISTERED_PAGES, -(long)mem->nr_pinned);
	mem->nr_pinned = 0;
	kvfree(mem->pages);
	mem->pages = NULL;
	towpin_uncharge(&mem->charge);
}

/*
 * How to pin the pages from @addr on, and in @nr, which it lowers, how many of
 * them that is for. Memory that is only to be read must be the caller's own all
 * the same: where it is still shared copy-on-write, the kernel either unshares
 * it by itself or must be made to by asking for a write (TOWPIN_GUP_UNSHARE).
 */
static unsigned int towpin_gup_flags(const struct towpin_mem *mem,
				     unsigned long addr, unsigned long *nr)
{
	struct vm_area_struct *vma;
	unsigned int flags = FOLL_LONGTERM;

	if (mem->rights & TOWPIN_RIGHT_WRITE)
		return flags | FOLL_WRITE;
	if (!TOWPIN_GUP_UNSHARE)
		return flags;

	mmap_read_lock(current->mm);
	vma = find_vma(current->mm, addr);
	if (vma && vma->vm_start <= addr) {
		*nr = min(*nr, (vma->vm_end - addr) >> PAGE_SHIFT);
		if (vma->vm_flags & VM_READ &&
		    (vma->vm_flags & (VM_SHARED | VM_MAYWRITE)) == VM_MAYWRITE)
			flags |= TOWPIN_GUP_UNSHARE;
	}
	mmap_read_unlock(current->mm);
	return flags;
}

static int towpin_mem_pin(struct towpin_mem *mem, unsigned long start,
			  unsigned long nr)
{
	while (mem->nr_pinned < nr) {
		unsigned long addr = start + (mem->nr_pinned << PAGE_SHIFT);
		unsigned long batch = min(nr - mem->nr_pinned,
					  TOWPIN_PIN_BATCH);
		unsigned int gup = towpin_gup_flags(mem, addr, &batch);
		long got;

		if (fatal_signal_pending(current))
			return -EINTR;
		got = pin_user_pages_fast(addr, batch, gup,
					  mem->pages + mem->nr_pinned);
		if (got < 0)
			return got;
		/* Nothing pinned and no error: do not spin on it. */
		if (!got)
			return -EFAULT;
		mem->nr_pinned += got;
		towpin_count(TOWPIN_CNT_REGISTERED_PAGES, got);
		cond_resched();
	}
	return 0;
}

/*
 * A pin of a part keeps all of a huge page from being freed: count it whole, as
 * io_uring does. The pages pinned are charged one by one already.
 */
static int towpin_mem_charge_huge(struct towpin_mem *mem)
{
	const struct page *last = NULL;
	unsigned long i, whole = 0;

	for (i = 0; i < mem->nr_pinned; i++) {
		struct page *head = compound_head(mem->pages[i]);

		if (head != last)
			whole += compound_nr(head);
		last = head;
	}
	return whole > mem->nr_pinned ?
	       towpin_charge_more(&mem->charge, whole - mem->nr_pinned) : 0;
}

/* A mem with one reference, or an error of TOWPIN_IOC_REGISTER. */
struct towpin_mem *towpin_mem_register(u64 addr, u64 length, u32 flags)
{
	unsigned long start, nr;
	struct towpin_mem *mem;
	u64 end;
	int ret;

	if (!length)
		return ERR_PTR(-EINVAL);
	if (length > TOWPIN_MAX_LENGTH || check_add_overflow(addr, length, &end))
		return ERR_PTR(-EOVERFLOW);
	addr = untagged_addr(addr);
	end = addr + length;
	if (!access_ok(u64_to_user_ptr(addr), length))
		return ERR_PTR(-EFAULT);
	start = addr & PAGE_MASK;
	nr = (PAGE_ALIGN(end) - start) >> PAGE_SHIFT;
	if (nr > totalram_pages() ||
	    array_size(nr, sizeof(*mem->pages)) > INT_MAX)
		return ERR_PTR(-ENOMEM);
	if (!(flags & TOWPIN_REG_READ_ONLY)) {
		ret = towpin_check_vmas(start, end);
		if (ret)
			return ERR_PTR(ret);
	}

	mem = kzalloc(sizeof(*mem), GFP_KERNEL_ACCOUNT);
	if (!mem)
		return ERR_PTR(-ENOMEM);
	refcount_set(&mem->refs, 1);
	mem->rights = TOWPIN_RIGHT_READ;
	if (!(flags & TOWPIN_REG_READ_ONLY))
		mem->rights |= TOWPIN_RIGHT_WRITE;
	mem->length = length;
	mem->first_off = offset_in_page(addr);
	ret = towpin_charge(&mem->charge, nr);
	if (ret)
		goto err_free;
	mem->pages = kvmalloc_array(nr, sizeof(*mem->pages),
				    GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!mem->pages) {
		ret = -ENOMEM;
		goto err_uncharge;
	}
	ret = towpin_mem_pin(mem, start, nr);
	if (!ret)
		ret = towpin_mem_charge_huge(mem);
	if (ret)
		goto err_unpin;
	towpin_count(TOWPIN_CNT_HANDLES, 1);
	return mem;

err_unpin:
	towpin_mem_unpin(mem);
	goto err_free;
err_uncharge:
	towpin_uncharge(&mem->charge);
err_free:
	kfree(mem);
	return ERR_PTR(ret);
}

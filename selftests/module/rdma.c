// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers as RDMA memory: a mapping of either kind of page is registered with
 * ibv_reg_mr(3), RDMA WRITE and READ between two buffers move the right bytes
 * and no others, and pages live as long as the registration, though descriptor
 * and mapping are gone.
 *
 * On the first RDMA device with an IPv4 RoCE v2 address, as rdma_rxe makes one of
 * any network interface; both queue pairs are on it.
 */
#include <infiniband/verbs.h>
#include <sched.h>
#include "fixture.h"
#include "kselftest_harness.h"

#define ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
		 IBV_ACCESS_REMOTE_READ)

FIXTURE(rdma) {
	int dev;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *a, *b;
};

FIXTURE_VARIANT(rdma) {
	uint32_t flags;
};

FIXTURE_VARIANT_ADD(rdma, huge_pages) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(rdma, small_pages) {
	.flags = TOWPIN_BUF_SMALL_PAGES,
};

/* The index of a RoCE v2 entry with an IPv4 address, or -1. */
static int find_gid(struct ibv_context *ctx, union ibv_gid *gid)
{
	static const uint8_t v4_mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct ibv_gid_entry entry;
	int i;

	for (i = 0; i < 16; i++) {
		if (ibv_query_gid_ex(ctx, 1, i, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    memcmp(entry.gid.raw, v4_mapped, sizeof(v4_mapped)))
			continue;
		*gid = entry.gid;
		return i;
	}
	return -1;
}

/* The device, open, and its address; NULL when there is none. */
static struct ibv_context *open_device(union ibv_gid *gid, int *index)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	for (i = 0; list && list[i] && !ctx; i++) {
		ctx = ibv_open_device(list[i]);
		*index = ctx ? find_gid(ctx, gid) : -1;
		if (ctx && *index < 0) {
			ibv_close_device(ctx);
			ctx = NULL;
		}
	}
	if (list)
		ibv_free_device_list(list);
	return ctx;
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { 4, 4, 1, 1, 0 },
	};

	return ibv_create_qp(pd, &init);
}

static int connect_qp(struct ibv_qp *qp, uint32_t peer, union ibv_gid gid,
		      int index)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = ACCESS,
	};
	int ret;

	ret = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
				       IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (ret)
		return ret;
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer, .max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = {
				.dgid = gid, .sgid_index = index,
				.hop_limit = 64,
			},
		},
	};
	ret = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV |
			    IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (ret)
		return ret;
	/* Patient: 4 s to an answer, an emulated machine may need them. */
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 20, .retry_cnt = 7,
		.rnr_retry = 7, .max_rd_atomic = 1,
	};
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
			     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

FIXTURE_SETUP(rdma)
{
	union ibv_gid gid;
	int index;

	self->ctx = open_device(&gid, &index);
	if (!self->ctx)
		SKIP(return, "no RDMA device with an IPv4 RoCE v2 address");
	self->pd = ibv_alloc_pd(self->ctx);
	self->channel = ibv_create_comp_channel(self->ctx);
	ASSERT_NE(NULL, self->pd);
	ASSERT_NE(NULL, self->channel);
	self->cq = ibv_create_cq(self->ctx, 16, NULL, self->channel, 0);
	ASSERT_NE(NULL, self->cq);
	self->a = create_qp(self->pd, self->cq);
	self->b = create_qp(self->pd, self->cq);
	ASSERT_NE(NULL, self->a);
	ASSERT_NE(NULL, self->b);
	ASSERT_EQ(0, connect_qp(self->a, self->b->qp_num, gid, index));
	ASSERT_EQ(0, connect_qp(self->b, self->a->qp_num, gid, index));
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
}

FIXTURE_TEARDOWN(rdma)
{
	ibv_destroy_qp(self->a);
	ibv_destroy_qp(self->b);
	ibv_destroy_cq(self->cq);
	ibv_destroy_comp_channel(self->channel);
	ibv_dealloc_pd(self->pd);
	ibv_close_device(self->ctx);
	close(self->dev);
	EXPECT_TRUE(counters_idle());
}

/* Have @opcode done by @qp; sleeps until it is. Its status, or -1 after 30 s. */
static int transfer(struct ibv_qp *qp, struct ibv_comp_channel *channel,
		    enum ibv_wr_opcode opcode, struct ibv_mr *local,
		    const void *at, uint32_t length, struct ibv_mr *remote,
		    const void *remote_at)
{
	struct ibv_sge sge = { (uintptr_t)at, length, local->lkey };
	struct ibv_send_wr wr = {
		.opcode = opcode, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)remote_at, remote->rkey },
	}, *bad;
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *unused;

	if (ibv_req_notify_cq(qp->send_cq, 0) || ibv_post_send(qp, &wr, &bad))
		return -1;
	if (poll(&p, 1, 30000) != 1 || ibv_get_cq_event(channel, &cq, &unused))
		return -1;
	ibv_ack_cq_events(cq, 1);
	return ibv_poll_cq(cq, 1, &wc) == 1 ? (int)wc.status : -1;
}

static void fill(char *p, size_t n, uint32_t seed)
{
	size_t i;

	for (i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		p[i] = seed >> 24;
	}
}

static size_t others(const char *p, char value, size_t n)
{
	size_t i, count = 0;

	for (i = 0; i < n; i++)
		count += p[i] != value;
	return count;
}

static long free_kib(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	char line[80];
	long kib = -1;

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "MemFree: %ld", &kib);
	if (f)
		fclose(f);
	return kib;
}

TEST_F(rdma, write_and_read_between_buffers)
{
	size_t length = 2 * HUGE, off = HUGE - MIB(1) / 2 + 123;
	int src = buf_create_on(self->dev, length, variant->flags,
				TOWPIN_NODE_ANY);
	int dst = buf_create_on(self->dev, length, variant->flags,
				TOWPIN_NODE_ANY);
	char *p = map_aligned(src, length), *q = map_aligned(dst, length);
	struct towpin_buf_info info;
	struct ibv_mr *from, *to;

	ASSERT_NE(MAP_FAILED, p);
	ASSERT_NE(MAP_FAILED, q);
	ASSERT_EQ(0, buf_info(self->dev, src, &info));
	EXPECT_EQ(variant->flags ? 0 : length, info.huge_bytes);
	from = ibv_reg_mr(self->pd, p, length, ACCESS);
	to = ibv_reg_mr(self->pd, q, length, ACCESS);
	ASSERT_NE(NULL, from);
	ASSERT_NE(NULL, to);

	/* Across a 2 MiB boundary, at offsets that differ within a page. */
	fill(p, length, 1);
	memset(q, 0x5a, length);
	ASSERT_EQ(IBV_WC_SUCCESS,
		  transfer(self->a, self->channel, IBV_WR_RDMA_WRITE, from,
			   p + 77, MIB(1), to, q + off));
	EXPECT_EQ(0, memcmp(q + off, p + 77, MIB(1)));
	EXPECT_EQ(0, others(q, 0x5a, off));
	EXPECT_EQ(0, others(q + off + MIB(1), 0x5a, length - off - MIB(1)));

	/* Back by the other side, to elsewhere. */
	memset(p, 0x33, length);
	ASSERT_EQ(IBV_WC_SUCCESS,
		  transfer(self->b, self->channel, IBV_WR_RDMA_READ, from,
			   p + MIB(2), MIB(1), to, q + off));
	EXPECT_EQ(0, memcmp(q + off, p + MIB(2), MIB(1)));
	EXPECT_EQ(0, others(p, 0x33, MIB(2)));
	EXPECT_EQ(0, others(p + MIB(3), 0x33, MIB(1)));

	EXPECT_EQ(0, ibv_dereg_mr(from));
	EXPECT_EQ(0, ibv_dereg_mr(to));
	munmap(p, length);
	munmap(q, length);
	close(src);
	close(dst);
	EXPECT_EQ(0, counter("buffers"));
	EXPECT_EQ(0, counter("buffer_pages"));
}

/*
 * Pages that the network may write to are nobody else's, though the buffer is
 * gone for us; with the registration they go back to the kernel.
 */
TEST_F(rdma, registration_keeps_the_pages)
{
	int own = buf_create(self->dev, 2 * HUGE), fd, again;
	char *p = map_aligned(own, 2 * HUGE), *q, *fresh[8];
	size_t length = MIB(64), i;
	struct ibv_mr *local, *mr;
	cpu_set_t one;
	long before;

	/* Pages are freed to a list of the CPU, where they are not counted. */
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(one), &one));
	ASSERT_NE(MAP_FAILED, p);
	fill(p, HUGE, 2);
	memset(p + HUGE, 0, HUGE);
	local = ibv_reg_mr(self->pd, p, 2 * HUGE, ACCESS);
	ASSERT_NE(NULL, local);

	fd = buf_create_on(self->dev, length, variant->flags, TOWPIN_NODE_ANY);
	ASSERT_LE(0, fd);
	q = map_aligned(fd, length);
	ASSERT_NE(MAP_FAILED, q);
	mr = ibv_reg_mr(self->pd, q, length, ACCESS);
	ASSERT_NE(NULL, mr);
	before = free_kib();
	munmap(q, length);
	close(fd);
	EXPECT_EQ(1, counter("buffers"));

	/* Had they been freed, these would be the same. */
	for (i = 0; i < 8; i++) {
		fd = buf_create_on(self->dev, HUGE, variant->flags,
				   TOWPIN_NODE_ANY);
		fresh[i] = map_aligned(fd, HUGE);
		ASSERT_NE(MAP_FAILED, fresh[i]);
		memset(fresh[i], 0x77, HUGE);
		close(fd);
	}
	for (i = 0; i < length; i += length / 4) {
		ASSERT_EQ(IBV_WC_SUCCESS,
			  transfer(self->a, self->channel, IBV_WR_RDMA_WRITE,
				   local, p, MIB(1), mr, q + i));
		ASSERT_EQ(IBV_WC_SUCCESS,
			  transfer(self->b, self->channel, IBV_WR_RDMA_READ,
				   local, p + HUGE, MIB(1), mr, q + i));
		EXPECT_EQ(0, memcmp(p, p + HUGE, MIB(1)));
		memset(p + HUGE, 0, HUGE);
	}
	for (i = 0; i < 8; i++)
		EXPECT_EQ(0, others(fresh[i], 0x77, HUGE));

	/* As much again takes what was given back, and 16 MiB are new. */
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	again = buf_create_on(self->dev, length, variant->flags,
			      TOWPIN_NODE_ANY);
	ASSERT_LE(0, again);
	EXPECT_GE(48 << 10, before - free_kib());

	close(again);
	for (i = 0; i < 8; i++)
		munmap(fresh[i], HUGE);
	EXPECT_EQ(0, ibv_dereg_mr(local));
	munmap(p, 2 * HUGE);
	close(own);
	EXPECT_EQ(0, counter("buffers"));
}

TEST_HARNESS_MAIN

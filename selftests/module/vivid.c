// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices and buffers, by the stock V4L2 test driver vivid: as an importer it
 * captures into buffers and plays out of them, bytes and rights being looked at
 * from both ends; as an exporter its memory is attached, read and written.
 *
 * With allocators=0 vivid works through the exporter's vmap, with allocators=1 it
 * attaches, maps and wants one contiguous chunk: run the test with each. Frames
 * are those of NTSC in YUYV: they end within a page, fit in 2 MiB, and all of
 * them are alike, whereas in PAL's the first line is random.
 */
#include <linux/videodev2.h>
#include "fixture.h"
#include "kselftest_harness.h"

#define LENGTH	HUGE		/* of all buffers */
#define FRAME	(720 * 480 * 2)
#define QUEUED	3		/* video buffers in use */
#define GUARD	0x5a
#define CAPTURE	V4L2_BUF_TYPE_VIDEO_CAPTURE
#define OUTPUT	V4L2_BUF_TYPE_VIDEO_OUTPUT

FIXTURE(vivid) {
	int dev;
	int cap;		/* its S-Video input */
	int out;		/* its S-Video output */
	bool contiguous;	/* allocators=1 */
};

/* An ioctl's 0 or negative errno. */
static int video(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

/* vivid's first node that can do @capability, or -1. */
static int video_open(uint32_t capability)
{
	struct v4l2_capability cap;
	char path[32];
	int i, fd;

	for (i = 0; i < 64; i++) {
		snprintf(path, sizeof(path), "/dev/video%d", i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!video(fd, VIDIOC_QUERYCAP, &cap) &&
		    !strcmp((char *)cap.driver, "vivid") &&
		    cap.device_caps & capability)
			return fd;
		close(fd);
	}
	return -1;
}

/* Set the control whose name contains @name, if there is one. */
static int set_control(int fd, const char *name, int value)
{
	struct v4l2_queryctrl query = { .id = V4L2_CTRL_FLAG_NEXT_CTRL };

	while (!video(fd, VIDIOC_QUERYCTRL, &query)) {
		struct v4l2_control control = { query.id, value };

		if (strstr((char *)query.name, name))
			return video(fd, VIDIOC_S_CTRL, &control);
		query.id |= V4L2_CTRL_FLAG_NEXT_CTRL;
	}
	return -ENOENT;
}

/* What is played on the S-Video output arrives on the S-Video input. */
static int set_loop(int cap, bool on)
{
	/* A menu since 6.12: 0 is the test pattern, 2 the first output. */
	int ret = set_control(cap, "S-Video 000-0 Is Connected To",
			      on ? 2 : 0);

	return ret == -ENOENT ? set_control(cap, "Loop Video", on) : ret;
}

static int set_format(int fd, uint32_t type)
{
	struct v4l2_format f = { .type = type };
	v4l2_std_id std = V4L2_STD_NTSC_M;
	int ret = video(fd, VIDIOC_S_STD, &std);

	if (!ret)
		ret = video(fd, VIDIOC_G_FMT, &f);
	f.fmt.pix.width = 720;
	f.fmt.pix.height = 480;
	f.fmt.pix.pixelformat = V4L2_PIX_FMT_YUYV;
	f.fmt.pix.field = V4L2_FIELD_INTERLACED;
	f.fmt.pix.bytesperline = 0;
	if (!ret)
		ret = video(fd, VIDIOC_S_FMT, &f);
	return ret ? ret : f.fmt.pix.sizeimage != FRAME;
}

static int request(int fd, uint32_t type, uint32_t memory, uint32_t count)
{
	struct v4l2_requestbuffers arg = {
		.count = count, .type = type, .memory = memory,
	};
	int ret = video(fd, VIDIOC_REQBUFS, &arg);

	return ret ? ret : arg.count < count ? -ENOMEM : 0;
}

static int stream_on(int fd, int type)
{
	return video(fd, VIDIOC_STREAMON, &type);
}

static int stream_off(int fd, int type)
{
	return video(fd, VIDIOC_STREAMOFF, &type);
}

/* Give video buffer @index, over the dma-buf @buf or its own memory (-1). */
static int queue(int fd, uint32_t type, uint32_t index, int buf)
{
	struct v4l2_buffer arg = {
		.index = index, .type = type, .field = V4L2_FIELD_INTERLACED,
		.memory = buf < 0 ? V4L2_MEMORY_MMAP : V4L2_MEMORY_DMABUF,
		.bytesused = type == OUTPUT ? FRAME : 0,
	};

	if (buf >= 0)
		arg.m.fd = buf;
	return video(fd, VIDIOC_QBUF, &arg);
}

/* The index of a video buffer that is done without an error, in 10 seconds. */
static int dequeue(int fd, uint32_t type, uint32_t memory)
{
	struct v4l2_buffer arg = { .type = type, .memory = memory };
	struct pollfd p = {
		.fd = fd, .events = type == OUTPUT ? POLLOUT : POLLIN,
	};
	int ret;

	if (poll(&p, 1, 10000) != 1)
		return -ETIME;
	ret = video(fd, VIDIOC_DQBUF, &arg);
	if (ret)
		return ret;
	if (arg.flags & V4L2_BUF_FLAG_ERROR || arg.bytesused != FRAME)
		return -EIO;
	return arg.index;
}

static char *map(int fd)
{
	return mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

/* Video buffer @index, of vivid's own memory. */
static char *map_video(int fd, uint32_t type, uint32_t index)
{
	struct v4l2_buffer arg = {
		.index = index, .type = type, .memory = V4L2_MEMORY_MMAP,
	};

	if (video(fd, VIDIOC_QUERYBUF, &arg))
		return MAP_FAILED;
	return mmap(NULL, FRAME, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    arg.m.offset);
}

/* A frame captured into vivid's own memory, copied: no part of us in it. */
static char *reference_frame(int cap)
{
	char *frame = malloc(FRAME), *p;

	if (request(cap, CAPTURE, V4L2_MEMORY_MMAP, QUEUED) ||
	    queue(cap, CAPTURE, 0, -1) || stream_on(cap, CAPTURE) ||
	    dequeue(cap, CAPTURE, V4L2_MEMORY_MMAP) ||
	    stream_off(cap, CAPTURE))
		return NULL;
	p = map_video(cap, CAPTURE, 0);
	if (p == MAP_FAILED)
		return NULL;
	memcpy(frame, p, FRAME);
	munmap(p, FRAME);
	return request(cap, CAPTURE, V4L2_MEMORY_MMAP, 0) ? NULL : frame;
}

/* How many of @n bytes are not @value. */
static size_t others(const char *p, char value, size_t n)
{
	size_t i, count = 0;

	for (i = 0; i < n; i++)
		count += p[i] != value;
	return count;
}

static void fill_random(char *p, size_t n)
{
	uint32_t x = 1;
	size_t i;

	for (i = 0; i < n; i++) {
		x = x * 1664525 + 1013904223;
		p[i] = x >> 24;
	}
}

/* A whole frame's operation by the module. 0, or what SUBMIT or the record says. */
static int frame_op(int dev, int opcode, uint32_t dst, uint32_t src)
{
	struct towpin_op op = {
		.opcode = opcode, .src = src, .dst = dst, .len = FRAME,
	};

	return dev_run(dev, &op);
}

/* What this kernel's videobuf2 makes of an exporter's EACCES. */
static int refused(bool contiguous)
{
	return contiguous ? -EINVAL : -EFAULT;
}

FIXTURE_SETUP(vivid)
{
	FILE *f = fopen("/sys/module/vivid/parameters/allocators", "re");
	int input = 2, output = 0;

	if (!f)
		SKIP(return, "vivid is not loaded");
	self->contiguous = fgetc(f) == '1';
	fclose(f);
	self->cap = video_open(V4L2_CAP_VIDEO_CAPTURE);
	self->out = video_open(V4L2_CAP_VIDEO_OUTPUT);
	ASSERT_LE(0, self->cap);
	ASSERT_LE(0, self->out);
	ASSERT_EQ(0, video(self->cap, VIDIOC_S_INPUT, &input));
	ASSERT_EQ(0, video(self->out, VIDIOC_S_OUTPUT, &output));
	ASSERT_EQ(0, set_format(self->cap, CAPTURE));
	ASSERT_EQ(0, set_format(self->out, OUTPUT));
	/* No frame counter in the picture: all frames are alike. */
	ASSERT_EQ(0, set_control(self->cap, "OSD Text Mode", 2));
	ASSERT_EQ(0, set_loop(self->cap, false));
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_setup(self->dev, 4, NULL));
}

FIXTURE_TEARDOWN(vivid)
{
	close(self->cap);
	close(self->out);
	close(self->dev);
	EXPECT_TRUE(counters_idle());
}

/* The whole test pattern, and nothing beyond it, into each kind of page. */
TEST_F(vivid, capture_arrives)
{
	char *frame = reference_frame(self->cap), *p;
	uint32_t flags;

	ASSERT_NE(NULL, frame);
	EXPECT_LT(FRAME / 2, others(frame, frame[0], FRAME));

	for (flags = 0; flags <= TOWPIN_BUF_SMALL_PAGES; flags++) {
		int buf = buf_create_on(self->dev, LENGTH, flags,
					TOWPIN_NODE_ANY);

		if (flags && self->contiguous) {
			close(buf);
			continue;
		}
		ASSERT_LE(0, buf);
		p = map(buf);
		memset(p, GUARD, LENGTH);
		ASSERT_EQ(0, request(self->cap, CAPTURE, V4L2_MEMORY_DMABUF,
				     QUEUED));
		ASSERT_EQ(0, queue(self->cap, CAPTURE, 0, buf));
		ASSERT_EQ(0, stream_on(self->cap, CAPTURE));
		ASSERT_EQ(0, dequeue(self->cap, CAPTURE, V4L2_MEMORY_DMABUF));
		ASSERT_EQ(0, stream_off(self->cap, CAPTURE));
		EXPECT_EQ(0, memcmp(p, frame, FRAME));
		EXPECT_EQ(0, others(p + FRAME, GUARD, LENGTH - FRAME));
		ASSERT_EQ(0, request(self->cap, CAPTURE, V4L2_MEMORY_DMABUF, 0));
		munmap(p, LENGTH);
		close(buf);
	}
	free(frame);
}

/* The module reads a buffer that a device has mapped, while it streams. */
TEST_F(vivid, capture_then_operate)
{
	char *frame = reference_frame(self->cap), *p;
	int bufs[QUEUED], handles[QUEUED], frame_handle, i, n;

	ASSERT_NE(NULL, frame);
	frame_handle = mem_register(self->dev, frame, FRAME, 0);
	ASSERT_LT(0, frame_handle);
	ASSERT_EQ(0, request(self->cap, CAPTURE, V4L2_MEMORY_DMABUF, QUEUED));
	for (i = 0; i < QUEUED; i++) {
		bufs[i] = buf_create(self->dev, LENGTH);
		handles[i] = mem_attach(self->dev, bufs[i]);
		ASSERT_LT(0, handles[i]);
		ASSERT_EQ(0, queue(self->cap, CAPTURE, i, bufs[i]));
	}
	ASSERT_EQ(0, stream_on(self->cap, CAPTURE));
	for (n = 0; n < 3 * QUEUED; n++) {
		i = dequeue(self->cap, CAPTURE, V4L2_MEMORY_DMABUF);
		ASSERT_LE(0, i);
		EXPECT_EQ(0, frame_op(self->dev, TOWPIN_OP_COMPARE, handles[i],
				      frame_handle));
		/* So that the next frame has to arrive as well. */
		p = map(bufs[i]);
		memset(p, GUARD, FRAME);
		munmap(p, LENGTH);
		ASSERT_EQ(0, queue(self->cap, CAPTURE, i, bufs[i]));
	}
	ASSERT_EQ(0, stream_off(self->cap, CAPTURE));
	ASSERT_EQ(0, request(self->cap, CAPTURE, V4L2_MEMORY_DMABUF, 0));
	for (i = 0; i < QUEUED; i++)
		close(bufs[i]);
	free(frame);
}

/* A device that has a buffer keeps it, whatever its owner does. */
TEST_F(vivid, capture_outlives_the_owner)
{
	int buf = buf_create(self->dev, LENGTH);
	char *p = map(buf);

	memset(p, GUARD, LENGTH);
	ASSERT_EQ(0, request(self->cap, CAPTURE, V4L2_MEMORY_DMABUF, QUEUED));
	ASSERT_EQ(0, queue(self->cap, CAPTURE, 0, buf));
	munmap(p, LENGTH);
	close(buf);
	close(self->dev);
	EXPECT_EQ(1, counter("buffers"));
	EXPECT_EQ(0, counter("contexts"));
	ASSERT_EQ(0, stream_on(self->cap, CAPTURE));
	ASSERT_EQ(0, dequeue(self->cap, CAPTURE, V4L2_MEMORY_DMABUF));
	ASSERT_EQ(0, stream_off(self->cap, CAPTURE));
	EXPECT_EQ(1, counter("buffers"));
	ASSERT_EQ(0, request(self->cap, CAPTURE, V4L2_MEMORY_DMABUF, 0));
	EXPECT_EQ(0, counter("buffers"));
	self->dev = -1;
}

/*
 * No device writes through a read-only descriptor. The exporter says EACCES, and
 * videobuf2 tells its caller something else. A device that only reads may attach;
 * vmap could also write, so that is refused.
 */
TEST_F(vivid, read_only_is_no_destination)
{
	int buf = buf_create(self->dev, LENGTH), ro, i;
	char *p = map(buf);

	ro = buf_derive(self->dev, buf, TOWPIN_RIGHT_READ);
	ASSERT_LE(0, ro);
	memset(p, GUARD, LENGTH);
	ASSERT_EQ(0, request(self->cap, CAPTURE, V4L2_MEMORY_DMABUF, QUEUED));
	for (i = 0; i < QUEUED; i++)
		EXPECT_EQ(refused(self->contiguous),
			  queue(self->cap, CAPTURE, i, ro));
	/* The refusal is of the descriptor, not of the video buffer. */
	ASSERT_EQ(0, queue(self->cap, CAPTURE, 0, buf));
	EXPECT_EQ(0, others(p, GUARD, LENGTH));
	ASSERT_EQ(0, request(self->cap, CAPTURE, V4L2_MEMORY_DMABUF, 0));

	ASSERT_EQ(0, request(self->out, OUTPUT, V4L2_MEMORY_DMABUF, QUEUED));
	EXPECT_EQ(self->contiguous ? 0 : refused(false),
		  queue(self->out, OUTPUT, 0, ro));
	ASSERT_EQ(0, request(self->out, OUTPUT, V4L2_MEMORY_DMABUF, 0));
	munmap(p, LENGTH);
	close(ro);
	close(buf);
}

/* What we wrote is played, arrives at the input pixel by pixel, and stays. */
TEST_F(vivid, output_is_what_we_wrote)
{
	int src = buf_create(self->dev, LENGTH);
	int dst = buf_create(self->dev, LENGTH);
	char *p = map(src), *q = map(dst), *frame = malloc(FRAME);
	int i, n, index;

	fill_random(frame, FRAME);
	memcpy(p, frame, FRAME);
	memset(p + FRAME, GUARD, LENGTH - FRAME);
	memset(q, GUARD, LENGTH);
	ASSERT_EQ(0, set_loop(self->cap, true));
	ASSERT_EQ(0, request(self->out, OUTPUT, V4L2_MEMORY_DMABUF, QUEUED));
	ASSERT_EQ(0, request(self->cap, CAPTURE, V4L2_MEMORY_DMABUF, QUEUED));
	/* One buffer may be with a device many times over. */
	for (i = 0; i < QUEUED; i++)
		ASSERT_EQ(0, queue(self->out, OUTPUT, i, src));
	ASSERT_EQ(0, queue(self->cap, CAPTURE, 0, dst));
	ASSERT_EQ(0, stream_on(self->out, OUTPUT));
	ASSERT_EQ(0, stream_on(self->cap, CAPTURE));
	for (n = 0; n < 20; n++) {
		index = dequeue(self->out, OUTPUT, V4L2_MEMORY_DMABUF);
		ASSERT_LE(0, index);
		ASSERT_EQ(0, queue(self->out, OUTPUT, index, src));
		ASSERT_EQ(0, dequeue(self->cap, CAPTURE, V4L2_MEMORY_DMABUF));
		if (!memcmp(q, frame, FRAME))
			break;
		ASSERT_EQ(0, queue(self->cap, CAPTURE, 0, dst));
	}
	EXPECT_GT(20, n);
	EXPECT_EQ(0, others(q + FRAME, GUARD, LENGTH - FRAME));
	EXPECT_EQ(0, memcmp(p, frame, FRAME));
	EXPECT_EQ(0, others(p + FRAME, GUARD, LENGTH - FRAME));
	ASSERT_EQ(0, stream_off(self->cap, CAPTURE));
	ASSERT_EQ(0, stream_off(self->out, OUTPUT));
	ASSERT_EQ(0, request(self->cap, CAPTURE, V4L2_MEMORY_DMABUF, 0));
	ASSERT_EQ(0, request(self->out, OUTPUT, V4L2_MEMORY_DMABUF, 0));
	ASSERT_EQ(0, set_loop(self->cap, false));
	munmap(p, LENGTH);
	munmap(q, LENGTH);
	close(src);
	close(dst);
	free(frame);
}

static int export_buffer(int fd, uint32_t index, uint32_t flags)
{
	struct v4l2_exportbuffer arg = {
		.type = CAPTURE, .index = index, .flags = flags | O_CLOEXEC,
	};
	int ret = video(fd, VIDIOC_EXPBUF, &arg);

	return ret ? ret : arg.fd;
}

/* The other way round: vivid's own memory as a handle of ours. */
TEST_F(vivid, exporter)
{
	int buf = buf_create(self->dev, LENGTH), fd, foreign, own, ro;
	struct towpin_attach arg = { .size = sizeof(arg) };
	char *p = map(buf), *video_mem;

	own = mem_attach(self->dev, buf);
	ASSERT_LT(0, own);
	ASSERT_EQ(0, request(self->cap, CAPTURE, V4L2_MEMORY_MMAP, QUEUED));
	video_mem = map_video(self->cap, CAPTURE, 0);
	ASSERT_NE(MAP_FAILED, video_mem);
	fd = export_buffer(self->cap, 0, O_RDWR);
	ASSERT_LE(0, fd);
	arg.fd = fd;
	ASSERT_EQ(0, dev_ioctl(self->dev, TOWPIN_IOC_ATTACH, &arg));
	close(fd);
	EXPECT_LE(FRAME, arg.length);
	EXPECT_EQ(TOWPIN_RIGHT_READ | TOWPIN_RIGHT_WRITE, arg.rights);
	foreign = arg.handle;

	/* Out of it, what was captured there. */
	ASSERT_EQ(0, queue(self->cap, CAPTURE, 0, -1));
	ASSERT_EQ(0, stream_on(self->cap, CAPTURE));
	ASSERT_EQ(0, dequeue(self->cap, CAPTURE, V4L2_MEMORY_MMAP));
	ASSERT_EQ(0, stream_off(self->cap, CAPTURE));
	EXPECT_LT(FRAME / 2, others(video_mem, video_mem[0], FRAME));
	memset(p, GUARD, LENGTH);
	EXPECT_EQ(0, frame_op(self->dev, TOWPIN_OP_COPY, own, foreign));
	EXPECT_EQ(0, memcmp(p, video_mem, FRAME));
	EXPECT_EQ(0, others(p + FRAME, GUARD, LENGTH - FRAME));

	/* Into it, but not through a read-only descriptor. */
	fill_random(p, FRAME);
	fd = export_buffer(self->cap, 0, O_RDONLY);
	ASSERT_LE(0, fd);
	ro = mem_attach(self->dev, fd);
	ASSERT_LT(0, ro);
	close(fd);
	EXPECT_EQ(-EACCES, frame_op(self->dev, TOWPIN_OP_COPY, ro, own));
	EXPECT_NE(0, memcmp(p, video_mem, FRAME));
	EXPECT_EQ(0, frame_op(self->dev, TOWPIN_OP_COPY, foreign, own));
	EXPECT_EQ(0, memcmp(p, video_mem, FRAME));
	EXPECT_EQ(0, frame_op(self->dev, TOWPIN_OP_COMPARE, own, ro));

	/* The handle keeps the memory when vivid has given it up. */
	munmap(video_mem, FRAME);
	ASSERT_EQ(0, mem_detach(self->dev, ro, 0));
	ASSERT_EQ(0, request(self->cap, CAPTURE, V4L2_MEMORY_MMAP, 0));
	EXPECT_EQ(0, frame_op(self->dev, TOWPIN_OP_COMPARE, own, foreign));
	ASSERT_EQ(0, mem_detach(self->dev, foreign, 0));
	munmap(p, LENGTH);
	close(buf);
}

TEST_HARNESS_MAIN

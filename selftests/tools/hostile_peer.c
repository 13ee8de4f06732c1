// SPDX-License-Identifier: GPL-2.0-only
/*
 * A peer of tow send or tow recv that breaks the rules, one at a time.
 *
 *	hostile_peer send NAME MODE	connects, as tow send does
 *	hostile_peer recv NAME MODE	listens, as tow recv does
 *	hostile_peer send|recv list	prints the modes
 *
 * Invariants: apart from the rule that MODE breaks, everything is right; after
 * breaking it the peer stays until the other side leaves, so that the other
 * side has to notice by itself; exits 0 when the rule could be broken.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ring.h"
#include "towpin.h"

#define SLOTS		4
#define SLOT_SIZE	8192
#define CRC_ZEROS	0x8a9136aau	/* CRC-32C of 32 zero bytes */
#define LENGTH		32

static struct tow_ctx *ctx;
static struct tow_buf *payload, *control;
static struct ring_word *words;
static int sock;
static int fds[256];			/* of HELLO */
static unsigned int nfds = WIRE_FDS;
static struct wire_hello hello;
static struct wire_end end;

static void die(const char *what)
{
	fprintf(stderr, "hostile_peer: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void check(int ret, const char *what)
{
	if (ret < 0) {
		errno = -ret;
		die(what);
	}
}

static void packet_fds(const void *data, size_t len, const int *f,
		       unsigned int n)
{
	union {
		char buf[CMSG_SPACE(256 * sizeof(int))];
		struct cmsghdr align;
	} c = { 0 };
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cm;

	if (n) {
		mh.msg_control = c.buf;
		mh.msg_controllen = CMSG_SPACE(n * sizeof(int));
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(cm), f, n * sizeof(int));
	}
	if (sendmsg(sock, &mh, MSG_NOSIGNAL) < 0)
		die("sendmsg");
}

static void packet(const void *data, size_t len)
{
	packet_fds(data, len, NULL, 0);
}

static void head(void *msg, enum wire_type type)
{
	struct wire_head *h = msg;

	h->magic = WIRE_MAGIC;
	h->version = WIRE_VERSION;
	h->type = type;
}

static void say(enum wire_type type, size_t len, uint32_t word)
{
	union wire_msg msg = { 0 };

	head(&msg, type);
	msg.abort.reason = word;
	packet(&msg, len);
}

static void say_hello(void)
{
	packet_fds(&hello, sizeof(hello), fds, nfds);
}

/* Reads a message; ends the program if the other side has left. */
static void expect(enum wire_type type, union wire_msg *msg)
{
	char c[1024];
	struct iovec iov = { .iov_base = msg, .iov_len = sizeof(*msg) };
	struct msghdr mh = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = c, .msg_controllen = sizeof(c),
	};
	struct cmsghdr *cm;

	if (recvmsg(sock, &mh, 0) <= 0)
		exit(0);
	if (msg->head.type != type) {
		fprintf(stderr, "hostile_peer: got message %u\n",
			msg->head.type);
		exit(1);
	}
	cm = CMSG_FIRSTHDR(&mh);
	if (cm)
		memcpy(fds, CMSG_DATA(cm), sizeof(int) * WIRE_FDS);
}

/* Until the other side leaves. */
static void linger(void)
{
	struct pollfd p = { .fd = sock, .events = 0 };

	poll(&p, 1, 20000);
}

static void bell(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		die("write eventfd");
}

/* The counter as full as it gets, and operations on it blocking. */
static void jam(int fd)
{
	uint64_t most = UINT64_MAX - 1;

	if (write(fd, &most, sizeof(most)) < 0 && errno != EAGAIN)
		die("write eventfd");
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
}

/* ---- as a sender ---- */

static void prepare(void)
{
	struct tow_info info = { .size = sizeof(info) };
	struct tow_open_opts opts = { .size = sizeof(opts) };
	void *addr;

	check(tow_open(&ctx, &opts), "tow_open");
	check(tow_info(ctx, &info), "tow_info");
	check(tow_buf_create(ctx, SLOTS * SLOT_SIZE, 0, TOW_NODE_ANY,
			     &payload), "tow_buf_create");
	check(tow_buf_create(ctx, SLOTS * sizeof(struct ring_word), 0,
			     TOW_NODE_ANY, &control), "tow_buf_create");
	check(tow_buf_map(control, &addr), "tow_buf_map");
	words = addr;
	fds[WIRE_FD_PAYLOAD] = tow_buf_derive(payload, TOW_RIGHT_READ);
	check(fds[WIRE_FD_PAYLOAD], "tow_buf_derive");
	fds[WIRE_FD_CONTROL] = tow_buf_fd(control);
	fds[WIRE_FD_DATA] = eventfd(0, EFD_NONBLOCK);
	fds[WIRE_FD_CREDIT] = eventfd(0, EFD_NONBLOCK);
	head(&hello, WIRE_HELLO);
	hello.provider = info.provider;
	hello.slots = SLOTS;
	hello.slot_size = SLOT_SIZE;
	head(&end, WIRE_END);
	end.length = LENGTH;
	end.chunks = 1;
	end.crc = CRC_ZEROS;
}

static void connect_to(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int i;

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	for (i = 0; i < 500; i++) {
		sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		if (!connect(sock, (struct sockaddr *)&sun, sizeof(sun)))
			return;
		close(sock);
		usleep(10000);
	}
	die("connect");
}

static void hello_ready(void)
{
	union wire_msg msg;

	say_hello();
	expect(WIRE_READY, &msg);
}

static void chunk(unsigned int slot, uint64_t ready, uint32_t length)
{
	__atomic_store_n(&words[slot].length, length, __ATOMIC_RELAXED);
	__atomic_store_n(&words[slot].ready, ready, __ATOMIC_RELEASE);
	bell(fds[WIRE_FD_DATA]);
}

static void s_vanish_at_once(void)
{
	exit(0);
}

static void s_silent(void)
{
}

static void s_empty(void)
{
	packet("", 0);
}

static void s_garbage(void)
{
	packet("GET / HTTP/1.1\r\n\r\n", 18);
}

static void s_short(void)
{
	packet(&hello, 5);
}

static void s_huge(void)
{
	static char big[65536];

	memcpy(big, &hello, sizeof(hello));
	packet_fds(big, sizeof(big), fds, WIRE_FDS);
}

static void s_version(void)
{
	hello.head.version = 7;
	say_hello();
}

static void s_type_unknown(void)
{
	say(77, sizeof(struct wire_abort), 0);
}

static void s_type_zero(void)
{
	say(0, sizeof(struct wire_abort), 0);
}

static void s_hello_truncated(void)
{
	packet_fds(&hello, sizeof(hello) - 4, fds, WIRE_FDS);
}

static void s_hello_long(void)
{
	char msg[sizeof(hello) + 8] = { 0 };

	memcpy(msg, &hello, sizeof(hello));
	packet_fds(msg, sizeof(msg), fds, WIRE_FDS);
}

static void s_fds_none(void)
{
	nfds = 0;
	say_hello();
}

static void s_fds_few(void)
{
	nfds = WIRE_FDS - 1;
	say_hello();
}

static void s_fds_many(void)
{
	fds[WIRE_FDS] = fds[0];
	nfds = WIRE_FDS + 1;
	say_hello();
}

static void s_fds_flood(void)
{
	for (nfds = WIRE_FDS; nfds < 253; nfds++)
		fds[nfds] = fds[0];
	say_hello();
}

static void s_slots_zero(void)
{
	hello.slots = 0;
	say_hello();
}

static void s_slots_huge(void)
{
	hello.slots = UINT32_MAX;
	say_hello();
}

static void s_slot_size_zero(void)
{
	hello.slot_size = 0;
	say_hello();
}

static void s_slot_size_odd(void)
{
	hello.slot_size = SLOT_SIZE + 1;
	say_hello();
}

static void s_slot_size_wraps(void)
{
	hello.slot_size = UINT64_C(1) << 62;
	say_hello();
}

static void s_provider(void)
{
	hello.provider = 99;
	say_hello();
}

static void s_payload_small(void)
{
	hello.slots = 1024;
	hello.slot_size = SLOT_SIZE * 16;
	say_hello();
}

static void s_control_small(void)
{
	check(tow_buf_create(ctx, 1024 * 4096, 0, TOW_NODE_ANY, &payload),
	      "tow_buf_create");
	fds[WIRE_FD_PAYLOAD] = tow_buf_fd(payload);
	hello.slots = 1024;
	hello.slot_size = 4096;
	say_hello();
}

static void s_control_readonly(void)
{
	fds[WIRE_FD_CONTROL] = tow_buf_derive(control, TOW_RIGHT_READ);
	check(fds[WIRE_FD_CONTROL], "tow_buf_derive");
	say_hello();
}

static void s_payload_device(void)
{
	fds[WIRE_FD_PAYLOAD] = open("/dev/zero", O_RDWR);
	say_hello();
}

static void s_payload_file(void)
{
	char name[] = "/tmp/hostile_peer.XXXXXX";

	fds[WIRE_FD_PAYLOAD] = mkstemp(name);
	unlink(name);
	if (ftruncate(fds[WIRE_FD_PAYLOAD], SLOTS * SLOT_SIZE))
		die("ftruncate");
	say_hello();
}

static int shrinkable(size_t size, unsigned int seals)
{
	int fd = memfd_create("hostile", MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, size) ||
	    (seals && fcntl(fd, F_ADD_SEALS, seals)))
		die("memfd_create");
	return fd;
}

/* Were it taken, a read of it would be a SIGBUS after the ftruncate(). */
static void s_payload_shrinks(void)
{
	fds[WIRE_FD_PAYLOAD] = shrinkable(SLOTS * SLOT_SIZE, 0);
	say_hello();
	usleep(300000);
	chunk(0, 1, SLOT_SIZE);
	if (ftruncate(fds[WIRE_FD_PAYLOAD], 0))
		die("ftruncate");
}

static void s_control_shrinks(void)
{
	fds[WIRE_FD_CONTROL] = shrinkable(SLOTS * sizeof(struct ring_word),
					  F_SEAL_GROW);
	say_hello();
	usleep(300000);
	if (ftruncate(fds[WIRE_FD_CONTROL], 0))
		die("ftruncate");
	bell(fds[WIRE_FD_DATA]);
}

static void s_event_pipe(void)
{
	int p[2];

	if (pipe(p))
		die("pipe");
	fds[WIRE_FD_DATA] = p[0];
	say_hello();
}

static void s_event_file(void)
{
	fds[WIRE_FD_CREDIT] = open("/dev/null", O_RDWR);
	say_hello();
}

static void s_end_first(void)
{
	packet(&end, sizeof(end));
}

static void s_hello_twice(void)
{
	hello_ready();
	say_hello();
}

static void s_ready_back(void)
{
	hello_ready();
	say(WIRE_READY, sizeof(struct wire_ready), 0);
}

static void s_end_fds(void)
{
	hello_ready();
	packet_fds(&end, sizeof(end), fds, 2);
}

static void s_end_short(void)
{
	hello_ready();
	packet(&end, sizeof(end) - 8);
}

static void s_length_big(void)
{
	hello_ready();
	chunk(0, 1, SLOT_SIZE + 1);
}

static void s_length_max(void)
{
	hello_ready();
	chunk(0, 1, UINT32_MAX);
}

static void s_length_zero(void)
{
	hello_ready();
	chunk(0, 1, 0);
}

static void s_ready_wild(void)
{
	hello_ready();
	chunk(0, 12345, 1);
}

static void s_ready_wild_later(void)
{
	hello_ready();
	chunk(0, 1, 1);
	chunk(1, UINT64_MAX, 1);
}

static void s_crc_wrong(void)
{
	end.crc ^= 1;
	hello_ready();
	chunk(0, 1, LENGTH);
	packet(&end, sizeof(end));
}

static void s_end_length_wrong(void)
{
	end.length++;
	hello_ready();
	chunk(0, 1, LENGTH);
	packet(&end, sizeof(end));
}

static void s_end_chunks_many(void)
{
	end.chunks = 3;
	hello_ready();
	chunk(0, 1, LENGTH);
	packet(&end, sizeof(end));
}

static void s_end_early(void)
{
	hello_ready();
	packet(&end, sizeof(end));
}

static void s_end_twice(void)
{
	struct msghdr mh = { 0 };
	struct iovec iov = { &end, sizeof(end) };

	hello_ready();
	packet(&end, sizeof(end));
	/* tow may have gone after the first. */
	mh.msg_iov = &iov;
	mh.msg_iovlen = 1;
	if (sendmsg(sock, &mh, MSG_NOSIGNAL) < 0 && errno != EPIPE)
		die("sendmsg");
}

static void s_abort(void)
{
	hello_ready();
	say(WIRE_ABORT, sizeof(struct wire_abort), WIRE_READ);
}

static void s_abort_wild(void)
{
	hello_ready();
	say(WIRE_ABORT, sizeof(struct wire_abort), 987654321);
}

static void s_vanish(void)
{
	hello_ready();
	exit(0);
}

static void s_vanish_later(void)
{
	hello_ready();
	chunk(0, 1, LENGTH);
	usleep(100000);
	exit(0);
}

static void s_vanish_jammed(void)
{
	hello_ready();
	jam(fds[WIRE_FD_DATA]);
	jam(fds[WIRE_FD_CREDIT]);
	chunk(0, 1, LENGTH);
	exit(0);
}

/* Not a broken rule: shows that the others differ by one thing only. */
static void s_good(void)
{
	union wire_msg msg;

	hello_ready();
	chunk(0, 1, LENGTH);
	packet(&end, sizeof(end));
	expect(WIRE_VERDICT, &msg);
	if (msg.verdict.reason != WIRE_OK)
		exit(1);
}

/* ---- as a receiver ---- */

static void listen_at(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	unlink(path);
	if (bind(fd, (struct sockaddr *)&sun, sizeof(sun)) || listen(fd, 1))
		die("listen");
	sock = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	if (sock < 0)
		die("accept");
	close(fd);
	unlink(path);
}

static void ready(void)
{
	struct tow_open_opts opts = { .size = sizeof(opts) };
	union wire_msg msg;
	void *addr;

	expect(WIRE_HELLO, &msg);
	hello = msg.hello;
	check(tow_open(&ctx, &opts), "tow_open");
	check(tow_buf_import(ctx, fds[WIRE_FD_CONTROL], &control),
	      "tow_buf_import");
	check(tow_buf_map(control, &addr), "tow_buf_map");
	words = addr;
	say(WIRE_READY, sizeof(struct wire_ready), 0);
}

static void credit(unsigned int slot, uint64_t value)
{
	__atomic_store_n(&words[slot].credit, value, __ATOMIC_RELEASE);
	bell(fds[WIRE_FD_CREDIT]);
}

static void verdict(uint64_t length, uint32_t crc, uint32_t reason)
{
	struct wire_verdict v = { 0 };

	head(&v, WIRE_VERDICT);
	v.length = length;
	v.crc = crc;
	v.reason = reason;
	packet(&v, sizeof(v));
}

/* Credits what comes, until END. */
static void consume(struct wire_end *e)
{
	union wire_msg msg;
	struct pollfd p[2] = {
		{ .fd = sock, .events = POLLIN },
		{ .fd = fds[WIRE_FD_DATA], .events = POLLIN },
	};
	uint64_t n = 0, count;

	for (;;) {
		poll(p, 2, -1);
		if (read(fds[WIRE_FD_DATA], &count, sizeof(count)) < 0)
			count = 0;
		while (__atomic_load_n(&words[n % hello.slots].ready,
				       __ATOMIC_ACQUIRE) == n + 1) {
			n++;
			credit((n - 1) % hello.slots, n);
		}
		if (p[0].revents) {
			expect(WIRE_END, &msg);
			*e = msg.end;
			return;
		}
	}
}

static void r_vanish_at_once(void)
{
	exit(0);
}

static void r_silent(void)
{
}

static void r_garbage(void)
{
	packet("220 ready\r\n", 11);
}

static void r_version(void)
{
	struct wire_ready m;

	head(&m, WIRE_READY);
	m.head.version = 2;
	packet(&m, sizeof(m));
}

static void r_ready_long(void)
{
	say(WIRE_READY, sizeof(struct wire_ready) + 4, 0);
}

static void r_ready_fds(void)
{
	struct wire_ready m;
	int f[1] = { 0 };

	head(&m, WIRE_READY);
	packet_fds(&m, sizeof(m), f, 1);
}

static void r_verdict_first(void)
{
	verdict(0, 0, WIRE_OK);
}

static void r_ready_twice(void)
{
	ready();
	say(WIRE_READY, sizeof(struct wire_ready), 0);
}

static void r_verdict_early(void)
{
	ready();
	verdict(0, 0, WIRE_OK);
}

static void r_credit_wild(void)
{
	ready();
	credit(0, 999);
}

static void r_refuse(void)
{
	say(WIRE_ABORT, sizeof(struct wire_abort), WIRE_PROVIDER);
}

static void r_abort(void)
{
	ready();
	say(WIRE_ABORT, sizeof(struct wire_abort), WIRE_WRITE);
}

static void r_vanish(void)
{
	ready();
	exit(0);
}

static void r_vanish_jammed(void)
{
	ready();
	jam(fds[WIRE_FD_CREDIT]);
	jam(fds[WIRE_FD_DATA]);
	usleep(100000);
	exit(0);
}

static void r_verdict_none(void)
{
	struct wire_end e;

	ready();
	consume(&e);
	exit(0);
}

static void r_verdict_crc(void)
{
	struct wire_end e;

	ready();
	consume(&e);
	verdict(e.length, e.crc ^ 1, WIRE_OK);
}

static void r_verdict_length(void)
{
	struct wire_end e;

	ready();
	consume(&e);
	verdict(e.length - 1, e.crc, WIRE_OK);
}

static void r_verdict_bad(void)
{
	struct wire_end e;

	ready();
	consume(&e);
	verdict(e.length, e.crc, WIRE_MISMATCH);
}

static void r_good(void)
{
	struct wire_end e;

	ready();
	consume(&e);
	verdict(e.length, e.crc, WIRE_OK);
}

struct mode {
	const char *name;
	void (*run)(void);
};

#define M(side, name)	{ #name, side ## _ ## name }

static const struct mode send_modes[] = {
	M(s, vanish_at_once), M(s, empty), M(s, garbage), M(s, short),
	M(s, huge), M(s, version), M(s, type_unknown), M(s, type_zero),
	M(s, hello_truncated), M(s, hello_long), M(s, fds_none), M(s, fds_few),
	M(s, fds_many), M(s, fds_flood), M(s, slots_zero), M(s, slots_huge),
	M(s, slot_size_zero), M(s, slot_size_odd), M(s, slot_size_wraps),
	M(s, provider), M(s, payload_small), M(s, control_small),
	M(s, control_readonly), M(s, payload_device), M(s, payload_file),
	M(s, payload_shrinks), M(s, control_shrinks), M(s, event_pipe),
	M(s, event_file), M(s, end_first), M(s, hello_twice), M(s, ready_back),
	M(s, end_fds), M(s, end_short), M(s, length_big), M(s, length_max),
	M(s, length_zero), M(s, ready_wild), M(s, ready_wild_later),
	M(s, crc_wrong), M(s, end_length_wrong), M(s, end_chunks_many),
	M(s, end_early), M(s, end_twice), M(s, abort), M(s, abort_wild),
	M(s, vanish), M(s, vanish_later), M(s, vanish_jammed), M(s, silent),
	M(s, good), { 0 }
};

static const struct mode recv_modes[] = {
	M(r, vanish_at_once), M(r, garbage), M(r, version), M(r, ready_long),
	M(r, ready_fds), M(r, verdict_first), M(r, ready_twice),
	M(r, verdict_early), M(r, credit_wild), M(r, refuse), M(r, abort),
	M(r, vanish), M(r, vanish_jammed), M(r, verdict_none),
	M(r, verdict_crc), M(r, verdict_length), M(r, verdict_bad),
	M(r, silent), M(r, good), { 0 }
};

int main(int argc, char **argv)
{
	bool sender = argc > 1 && !strcmp(argv[1], "send");
	const struct mode *m = sender ? send_modes : recv_modes;
	const char *dir = getenv("XDG_RUNTIME_DIR");
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];

	if (argc == 3 && !strcmp(argv[2], "list")) {
		for (; m->name; m++)
			puts(m->name);
		return 0;
	}
	if (argc != 4 || !dir) {
		fprintf(stderr, "usage: hostile_peer send|recv NAME MODE\n");
		return 2;
	}
	while (m->name && strcmp(m->name, argv[3]))
		m++;
	if (!m->name) {
		fprintf(stderr, "hostile_peer: no mode %s\n", argv[3]);
		return 2;
	}
	snprintf(path, sizeof(path), "%s/towpin", dir);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/towpin/%s.sock", dir, argv[2]);
	if (sender) {
		prepare();
		connect_to(path);
	} else {
		listen_at(path);
	}
	m->run();
	linger();
	return 0;
}

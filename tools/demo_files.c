// SPDX-License-Identifier: GPL-2.0-only
/*
 * The files of tow demo.
 *
 * Invariants: all of them are in one temporary directory, and
 * demo_remove_dir() leaves nothing of it; the user's FILE is only read.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "demo.h"
#include "tool.h"

#define CHUNK		(1u << 20)

int demo_make_dir(struct demo *d)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(d->dir, sizeof(d->dir), "%s/tow-demo.XXXXXX",
		 tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(d->dir)) {
		fail(-errno, "cannot create %s: %s; set TMPDIR", d->dir,
		     strerror(errno));
		return -EIO;
	}
	snprintf(d->source, sizeof(d->source), "%s/source", d->dir);
	snprintf(d->copy, sizeof(d->copy), "%s/copy", d->dir);
	snprintf(d->result, sizeof(d->result), "%s/result", d->dir);
	setenv("XDG_RUNTIME_DIR", d->dir, 1);
	return 0;
}

void demo_remove_dir(struct demo *d)
{
	static const char *const names[] = {
		"source", "copy", "result", "towpin/" DEMO_NAME ".sock",
		"towpin/" DEMO_NAME ".lock", "towpin", "",
	};
	char path[sizeof(d->dir) + 32];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", d->dir, names[i]);
		remove(path);
	}
}

static int write_source(struct demo *d)
{
	static uint64_t block[CHUNK / sizeof(uint64_t)];
	uint64_t x = 0x9e3779b97f4a7c15u, left = d->size;
	FILE *f = fopen(d->source, "we");
	size_t n, i;
	bool bad;

	if (!f)
		return fail(-errno, "cannot create %s: %s", d->source,
			    strerror(errno));
	while (left && !stop_wanted()) {
		/* xorshift: no two blocks alike, the same in each run */
		for (i = 0; i < ARRAY_SIZE(block); i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			block[i] = x;
		}
		n = left < sizeof(block) ? left : sizeof(block);
		if (fwrite(block, 1, n, f) != n)
			break;
		left -= n;
	}
	bad = left || ferror(f);
	bad |= fclose(f) != 0;
	if (stop_wanted())
		return stop_fail();
	if (bad)
		return fail(-EIO,
			    "cannot write %s: %s; use a smaller --size or another TMPDIR",
			    d->source, strerror(errno));
	return 0;
}

/* Under a fixed name, and as the caller sees it from any directory. */
static int link_source(struct demo *d)
{
	struct stat st;
	char *path;
	int err = 0;

	if (stat(d->path, &st) < 0)
		return fail(-errno, "cannot open %s: %s", d->path,
			    strerror(errno));
	if (!S_ISREG(st.st_mode))
		return fail(-EINVAL, "'%s' is not a regular file", d->path);
	d->size = st.st_size;
	path = realpath(d->path, NULL);
	if (!path || symlink(path, d->source) < 0)
		err = fail(-errno, "cannot link to %s: %s", d->path,
			   strerror(errno));
	free(path);
	return err;
}

int demo_make_source(struct demo *d)
{
	return d->path ? link_source(d) : write_source(d);
}

/* Bit by bit in a table: slow, but not the code that is being shown. */
static uint32_t crc32c(uint32_t crc, const char *data, size_t n)
{
	static uint32_t table[256];
	unsigned int i, k;

	if (!table[1]) {
		for (i = 0; i < 256; i++) {
			table[i] = i;
			for (k = 0; k < 8; k++)
				table[i] = table[i] >> 1 ^
					   (table[i] & 1 ? 0x82f63b78 : 0);
		}
	}
	crc = ~crc;
	while (n--)
		crc = crc >> 8 ^ table[(crc ^ (uint8_t)*data++) & 255];
	return ~crc;
}

/* Compares all bytes. */
int demo_check_copy(struct demo *d)
{
	static char a[CHUNK], b[CHUNK];
	FILE *fa = fopen(d->source, "re"), *fb = fopen(d->copy, "re");
	bool same = fa && fb;
	size_t na = 0, nb;
	uint32_t crc = 0;

	while (same) {
		na = fread(a, 1, sizeof(a), fa);
		nb = fread(b, 1, sizeof(b), fb);
		same = na == nb && !memcmp(a, b, na);
		crc = crc32c(crc, a, na);
		if (!na)
			break;
	}
	same = same && !ferror(fa) && !ferror(fb);
	if (fa)
		fclose(fa);
	if (fb)
		fclose(fb);
	if (!same)
		return fail(-EBADMSG, "the copy differs from the original");
	d->crc = crc;
	return 0;
}

/* What tow send printed must agree with the file. */
int demo_check_result(struct demo *d)
{
	struct json_object *o = json_object_from_file(d->result), *v;
	char crc[16];
	bool same = false;

	snprintf(crc, sizeof(crc), "%08x", d->crc);
	if (!o)
		return fail(-EIO, "no result of tow send");
	if (json_object_object_get_ex(o, "crc32c", &v))
		same = !strcmp(json_object_get_string(v), crc);
	if (json_object_object_get_ex(o, "provider", &v))
		snprintf(d->provider, sizeof(d->provider), "%s",
			 json_object_get_string(v));
	if (json_object_object_get_ex(o, "chunks", &v))
		d->chunks = json_object_get_uint64(v);
	json_object_put(o);
	if (!same)
		return fail(-EBADMSG, "tow send computed another CRC-32C");
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages, numbers in options, clock and standard streams.
 *
 * Invariants: a message is one write to stderr that ends in one newline; a
 * parser accepts the whole text or nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"
#include "towpin.h"

const char *prog = "tow";

static void say(const char *fmt, va_list ap)
{
	char line[1024];
	int n, m;

	n = snprintf(line, sizeof(line), "%s: ", prog);
	m = vsnprintf(line + n, sizeof(line) - n, fmt, ap);
	n = m < (int)sizeof(line) - n ? n + m : (int)sizeof(line) - 1;
	progress_clear();
	fprintf(stderr, "%.*s\n", n, line);
}

/* Returns @err, which is a negative errno. */
int fail(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	return err;
}

void usage_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	exit(EXIT_USAGE);
}

/* The usual reason for ENOMEM is a limit, so name it and how to raise it. */
int fail_memory(struct tow_ctx *ctx, const char *what, uint64_t bytes)
{
	struct tow_info info = { .size = sizeof(info) };
	char want[32], have[32] = "unlimited";

	size_text(want, sizeof(want), bytes);
	if (!tow_info(ctx, &info) && info.memlock != UINT64_MAX)
		size_text(have, sizeof(have), info.memlock);
	return fail(-ENOMEM,
		    "no memory for %s of %s (RLIMIT_MEMLOCK: %s); raise it with 'ulimit -l' or in the limits of group towpin, or use smaller --slots or --slot-size",
		    what, want, have);
}

int parse_size(const char *text, uint64_t *bytes)
{
	unsigned int shift = 0;
	unsigned long long n;
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno)
		return -errno;
	switch (*end) {
	case 'K':
	case 'k':
		shift = 10;
		break;
	case 'M':
	case 'm':
		shift = 20;
		break;
	case 'G':
	case 'g':
		shift = 30;
		break;
	case '\0':
		break;
	default:
		return -EINVAL;
	}
	if (shift && end[1])
		return -EINVAL;
	if (n > UINT64_MAX >> shift)
		return -ERANGE;
	*bytes = (uint64_t)n << shift;
	return 0;
}

int parse_count(const char *text, uint64_t min, uint64_t max, uint64_t *n)
{
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*n = strtoull(text, &end, 10);
	if (errno || *end || *n < min || *n > max)
		return -EINVAL;
	return 0;
}

int parse_seconds(const char *text, uint64_t *ns)
{
	double s;
	char *end;

	if (*text != '.' && (*text < '0' || *text > '9'))
		return -EINVAL;
	s = strtod(text, &end);
	if (end == text || *end || !isfinite(s) || s < 0 || s > 1e9)
		return -EINVAL;
	*ns = (uint64_t)(s * 1e9);
	return 0;
}

const char *size_text(char *buf, size_t len, double bytes)
{
	static const char *const unit[] = {
		"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"
	};
	unsigned int i = 0;

	while (bytes >= 1024 && i < ARRAY_SIZE(unit) - 1) {
		bytes /= 1024;
		i++;
	}
	if (bytes == (uint64_t)bytes)
		snprintf(buf, len, "%.0f %s", bytes, unit[i]);
	else
		snprintf(buf, len, "%.1f %s", bytes, unit[i]);
	return buf;
}

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + t.tv_nsec;
}

/*
 * A file opened later must never become stdin, stdout or stderr by chance.
 * The stand-in is open the wrong way round, so that using it fails with EBADF
 * as using the closed descriptor would.
 */
int stdio_open(void)
{
	int fd;

	for (fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		if (open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd)
			return -EBADF;
	}
	return 0;
}

int stdout_close(void)
{
	if (ferror(stdout) || fflush(stdout))
		return fail(-EIO, "cannot write to standard output: %s",
			    strerror(errno));
	return 0;
}

int context_open(struct tow_ctx **ctx, unsigned int entries)
{
	struct tow_open_opts opts = {
		.size = sizeof(opts),
		.provider = TOW_PROVIDER_AUTO,
		.entries = entries,
	};
	int err = tow_open(ctx, &opts);

	if (err == -EINVAL && getenv("TOW_PROVIDER"))
		return fail(err,
			    "cannot open towpin; TOW_PROVIDER must be kmod, user, auto or unset");
	if (err < 0)
		return fail(err,
			    "cannot open towpin: %s; is module towpin loaded and are you in group towpin? (TOW_PROVIDER=user does without)",
			    strerror(-err));
	return 0;
}

const char *provider_name(unsigned int provider)
{
	switch (provider) {
	case TOW_PROVIDER_KMOD:
		return "kmod";
	case TOW_PROVIDER_USER:
		return "user";
	default:
		return "unknown";
	}
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a finished transfer says: a JSON object, or a line for a person.
 *
 * Invariants: the keys are those of tow-send(1) and tow-recv(1), and the same
 * for both commands; the object is one line.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "tool.h"

struct json_object *report_seconds(double seconds)
{
	char text[32];

	/* json-c's own format has 17 digits */
	snprintf(text, sizeof(text), "%.6f", seconds);
	return json_object_new_double_s(seconds, text);
}

/* Takes the caller's reference to @object. */
int report_json(struct json_object *object, FILE *out)
{
	const char *text;
	int err = 0;

	text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_SPACED |
					      JSON_C_TO_STRING_NOSLASHESCAPE);
	if (!text || fprintf(out, "%s\n", text) < 0 || fflush(out))
		err = fail(-EIO, "cannot write the JSON object: %s",
			   strerror(errno));
	json_object_put(object);
	return err;
}

static void add_int(struct json_object *o, const char *key, uint64_t value)
{
	json_object_object_add(o, key, json_object_new_uint64(value));
}

static void add_text(struct json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, json_object_new_string(text));
}

static int print_json(const struct report *r, double s, FILE *out)
{
	struct json_object *o = json_object_new_object();
	char crc[16];

	snprintf(crc, sizeof(crc), "%08x", r->crc);
	add_text(o, "command", r->command);
	add_text(o, "name", r->name);
	add_int(o, "bytes", r->bytes);
	json_object_object_add(o, "seconds", report_seconds(s));
	add_int(o, "throughput_bytes_per_second", r->bytes / s);
	add_text(o, "crc32c", crc);
	add_text(o, "provider", provider_name(r->provider));
	add_int(o, "chunks", r->chunks);
	add_int(o, "operations", r->operations);
	add_int(o, "slots", r->slots);
	add_int(o, "slot_size", r->slot_size);
	add_int(o, "peer_pid", r->peer_pid);
	add_int(o, "peer_uid", r->peer_uid);
	return report_json(o, out);
}

int report_print(const struct report *r, bool json, FILE *json_out)
{
	double s = (r->ns ? r->ns : 1) / 1e9;
	char size[32], rate[32];

	progress_clear();
	if (json)
		return print_json(r, s, json_out);
	if (progress_shown())
		fprintf(stderr,
			"%s: %s %s in %.3f s (%s/s), CRC-32C %08x, provider %s\n",
			prog, r->verb, size_text(size, sizeof(size), r->bytes),
			s, size_text(rate, sizeof(rate), r->bytes / s), r->crc,
			provider_name(r->provider));
	return 0;
}

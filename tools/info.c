// SPDX-License-Identifier: GPL-2.0-only
/*
 * tow info: what moves the bytes here, and why.
 *
 * Invariants: the keys of the JSON object are those of tow-info(1), all of them
 * always there; a limit that does not exist is null, not a big number.
 */
#include <argp.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"
#include "towpin.h"

static const struct {
	enum tow_engine engine;
	const char *name, *what;
} engines[] = {
	{ TOW_ENGINE_INLINE, "inline", "the submitting thread" },
	{ TOW_ENGINE_CPU, "cpu", "a worker" },
};

static bool has_engine(const struct tow_info *info, unsigned int i)
{
	return info->engines & 1u << engines[i].engine;
}

static int print_json(const struct tow_info *info)
{
	struct json_object *o = json_object_new_object();
	struct json_object *list = json_object_new_array();
	struct json_object *name;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(engines); i++) {
		if (!has_engine(info, i))
			continue;
		name = json_object_new_string(engines[i].name);
		json_object_array_add(list, name);
	}
#define ADD(key, value)	json_object_object_add(o, key, value)
	ADD("version", json_object_new_string(tow_version()));
	ADD("provider", json_object_new_string(provider_name(info->provider)));
	ADD("reason", json_object_new_string(info->reason));
	ADD("engines", list);
	ADD("entries", json_object_new_uint64(info->entries));
	ADD("inline_max", json_object_new_uint64(info->inline_max));
	ADD("max_length", json_object_new_uint64(info->max_length));
	ADD("max_handles", json_object_new_uint64(info->max_handles));
	ADD("max_eventfds", json_object_new_uint64(info->max_eventfds));
	ADD("memlock", info->memlock == UINT64_MAX ? NULL :
	    json_object_new_uint64(info->memlock));
#undef ADD
	return report_json(o, stdout);
}

static int print_text(const struct tow_info *info)
{
	char size[32];
	unsigned int i;

	printf("provider     %s (%s)\n", provider_name(info->provider),
	       info->provider == TOW_PROVIDER_KMOD ? "the kernel module" :
	       "worker threads of the library");
	if (info->reason[0])
		printf("because      %s\n", info->reason);
	for (i = 0; i < ARRAY_SIZE(engines); i++)
		if (has_engine(info, i))
			printf("engine       %s: %s\n", engines[i].name,
			       engines[i].what);
	printf("inline       up to %s\n",
	       size_text(size, sizeof(size), info->inline_max));
	printf("operations   %u in flight, of up to %s each\n", info->entries,
	       size_text(size, sizeof(size), info->max_length));
	printf("handles      %u\n", info->max_handles);
	printf("eventfds     %u\n", info->max_eventfds);
	printf("memlock      %s\n", info->memlock == UINT64_MAX ? "unlimited" :
	       size_text(size, sizeof(size), info->memlock));
	printf("version      %s\n", tow_version());
	return stdout_close();
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	bool *json = state->input;

	(void)arg;
	switch (key) {
	case 'j':
		*json = true;
		return 0;
	case ARGP_KEY_ARG:
		usage_fail("too many arguments; it takes none");
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_info(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "json", 'j', NULL, 0, "print a JSON object", 0 },
		{ 0 }
	};
	static const struct argp argp = {
		.options = options, .parser = parse,
		.doc =
			"Tell what moves the bytes here, its limits, and why the kernel module is not used if it is not.",
	};
	struct tow_info info = { .size = sizeof(info) };
	struct tow_ctx *ctx;
	bool json = false;
	int err;

	argp_parse(&argp, argc, argv, 0, NULL, &json);
	err = context_open(&ctx, 0);
	if (err)
		return err;
	err = tow_info(ctx, &info);
	if (err < 0)
		fail(err, "cannot ask towpin: %s", strerror(-err));
	else
		err = json ? print_json(&info) : print_text(&info);
	tow_close(ctx);
	return err;
}

// This guest registers its function sum as a tool, asks a model to use it, and prints the answer and
// what it cost in tokens. In C the value of a function pointer is its place in the table.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spear.h"

static _Alignas(8) char arena[64 * 1024];
static char answer[64 * 1024], metrics[256];

// number finds the whole number of a member, which is enough for what the schema allows.
static long number(const char *args, const char *member) {
	const char *at = strstr(args, member);
	return at && (at = strchr(at, ':')) ? strtol(at + 1, NULL, 10) : 0;
}

// The arguments end with a NUL.
static int32_t sum(char *args, uint32_t args_len, char *out, uint32_t *out_len) {
	(void)args_len;
	char text[64];
	uint32_t n = (uint32_t)snprintf(text, sizeof text, "{\"sum\":%ld}", number(args, "\"a\"") + number(args, "\"b\""));
	if (n > *out_len) {
		*out_len = n;
		return -SPEAR_ENOSPC;
	}
	memcpy(out, text, n);
	*out_len = n;
	return 0;
}

static int32_t must(int32_t rc) {
	if (rc < 0) {
		fprintf(stderr, "error %d\n", -rc);
		exit(-rc);
	}
	return rc;
}

static void set(int32_t fd, const char *key, uintptr_t value) {
	char text[128];
	uint32_t n = (uint32_t)snprintf(text, sizeof text, "{\"key\":\"%s\",\"value\":%lu}", key, (unsigned long)value);
	must(cchat_ctl(fd, SPEAR_SET_PARAM, text, &n));
}

int main(void) {
	const char *prompt = "Please call sum for a=7 and b=35.";
	const char *definition =
		"{\"type\":\"function\",\"function\":{\"name\":\"sum\",\"description\":\"Adds two whole numbers.\","
		"\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"integer\"}},"
		"\"required\":[\"a\",\"b\"]}}}";

	int32_t fd = must(cchat_create());
	must(cchat_write_msg(fd, "user", 4, prompt, (uint32_t)strlen(prompt)));
	must(cchat_write_fn(fd, (int32_t)(intptr_t)&sum, definition, (uint32_t)strlen(definition)));
	set(fd, "tool_arena_ptr", (uintptr_t)arena);
	set(fd, "tool_arena_len", sizeof arena);

	int32_t response = must(cchat_send(fd, SPEAR_ENABLE_METRICS | SPEAR_AUTO_TOOL_CALL));
	uint32_t n = sizeof answer;
	printf("%.*s\n", must(cchat_recv(response, answer, &n)), answer);
	n = sizeof metrics;
	printf("%.*s\n", must(cchat_ctl(response, SPEAR_GET_METRICS, metrics, &n)), metrics);
	must(cchat_close(response));
	must(cchat_close(fd));
	return 0;
}

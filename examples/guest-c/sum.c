// This guest registers its function sum as a tool, asks a model to use it, and prints the answer and
// what it cost in tokens. In C the value of a function pointer is its place in the table.

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPEAR(name) __attribute__((import_module("spear"), import_name(#name))) extern

SPEAR(cchat_create) int32_t cchat_create(void);
SPEAR(cchat_write_msg) int32_t cchat_write_msg(int32_t fd, const char *role, uint32_t role_len, const char *content, uint32_t content_len);
SPEAR(cchat_write_fn) int32_t cchat_write_fn(int32_t fd, int32_t fn_offset, const char *json, uint32_t json_len);
SPEAR(cchat_ctl) int32_t cchat_ctl(int32_t fd, int32_t cmd, void *arg, uint32_t *arg_len);
SPEAR(cchat_send) int32_t cchat_send(int32_t fd, int32_t flags);
SPEAR(cchat_recv) int32_t cchat_recv(int32_t fd, char *out, uint32_t *out_len);
SPEAR(cchat_close) int32_t cchat_close(int32_t fd);

enum { SET_PARAM = 1, GET_METRICS = 2, ENABLE_METRICS = 1, AUTO_TOOL_CALL = 2 };

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
		return -ENOSPC;
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
	must(cchat_ctl(fd, SET_PARAM, text, &n));
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

	int32_t response = must(cchat_send(fd, ENABLE_METRICS | AUTO_TOOL_CALL));
	uint32_t n = sizeof answer;
	printf("%.*s\n", must(cchat_recv(response, answer, &n)), answer);
	n = sizeof metrics;
	printf("%.*s\n", must(cchat_ctl(response, GET_METRICS, metrics, &n)), metrics);
	must(cchat_close(response));
	must(cchat_close(fd));
	return 0;
}

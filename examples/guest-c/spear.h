// The calls of a guest to its host, and the numbers that go with them. docs/internals/guest-abi.md describes them.

#ifndef SPEAR_H
#define SPEAR_H

#include <stdint.h>

#define SPEAR_IMPORT(name) __attribute__((import_module("spear"), import_name(#name))) extern

SPEAR_IMPORT(cchat_create) int32_t cchat_create(void);
SPEAR_IMPORT(cchat_write_msg) int32_t cchat_write_msg(int32_t fd, const char *role, uint32_t role_len, const char *content, uint32_t content_len);
SPEAR_IMPORT(cchat_write_fn) int32_t cchat_write_fn(int32_t fd, int32_t fn_offset, const char *json, uint32_t json_len);
SPEAR_IMPORT(cchat_ctl) int32_t cchat_ctl(int32_t fd, int32_t cmd, void *arg, uint32_t *arg_len);
SPEAR_IMPORT(cchat_send) int32_t cchat_send(int32_t fd, int32_t flags);
SPEAR_IMPORT(cchat_recv) int32_t cchat_recv(int32_t fd, char *out, uint32_t *out_len);
SPEAR_IMPORT(cchat_close) int32_t cchat_close(int32_t fd);

enum { SPEAR_SET_PARAM = 1, SPEAR_GET_METRICS = 2 };           // commands of cchat_ctl
enum { SPEAR_ENABLE_METRICS = 1, SPEAR_AUTO_TOOL_CALL = 2 };   // flags of cchat_send

// Errors are the negated numbers of Linux. <errno.h> of a WASI compiler has other numbers under the same names: there ENOSPC
// is 51 and 28 is EINVAL. Use these.
enum {
	SPEAR_EIO = 5,
	SPEAR_EBADF = 9,
	SPEAR_EAGAIN = 11,
	SPEAR_ENOMEM = 12,
	SPEAR_EACCES = 13,
	SPEAR_EFAULT = 14,
	SPEAR_EINVAL = 22,
	SPEAR_ENOSPC = 28,
	SPEAR_ENOSYS = 38,
};

// Source that is written with the names of <errno.h> compiles unchanged with `-include spear.h -DSPEAR_ERRNO`.
#ifdef SPEAR_ERRNO
#include <errno.h>
#undef EIO
#undef EBADF
#undef EAGAIN
#undef ENOMEM
#undef EACCES
#undef EFAULT
#undef EINVAL
#undef ENOSPC
#undef ENOSYS
#define EIO SPEAR_EIO
#define EBADF SPEAR_EBADF
#define EAGAIN SPEAR_EAGAIN
#define ENOMEM SPEAR_ENOMEM
#define EACCES SPEAR_EACCES
#define EFAULT SPEAR_EFAULT
#define EINVAL SPEAR_EINVAL
#define ENOSPC SPEAR_ENOSPC
#define ENOSYS SPEAR_ENOSYS
#endif

#endif

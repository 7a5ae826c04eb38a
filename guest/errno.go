package guest

// The error numbers of the ABI, which are those of Linux. Calls return them negated. The C library of WASI has other ones for the
// same names: see docs/internals/guest-abi.md.
const (
	eio    = 5
	ebadf  = 9
	eagain = 11
	enomem = 12
	eacces = 13
	efault = 14
	einval = 22
	enospc = 28
	enosys = 38
)

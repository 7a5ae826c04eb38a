package guest

// The error numbers of the ABI. Calls return them negated.
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

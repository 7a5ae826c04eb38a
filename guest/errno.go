package guest

// The numbers of errors that guests know, negated where a call returns them.
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

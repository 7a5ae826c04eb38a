package pgtest

import "syscall"

// sharedFolder returns the parent of the shared server's folder: memory, where a flush costs nothing, if 2 GiB of it are free, else "".
func sharedFolder() string {
	const memory = "/dev/shm"
	var fs syscall.Statfs_t
	if syscall.Statfs(memory, &fs) != nil || fs.Bavail*uint64(fs.Bsize) < 2<<30 {
		return ""
	}
	return memory
}

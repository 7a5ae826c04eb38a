package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// limitCPU bounds the CPU of a server and of all processes that it starts from then on to so many cores: by a control group
// where those can be written, else by binding it to whole cores. It returns how, and a function that removes the bound, which
// is called after the server has ended.
func limitCPU(pid int, cores float64) (how string, remove func(), err error) {
	for _, g := range []struct{ root, file, value string }{
		{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", strconv.Itoa(int(cores * 100_000))},
		{"/sys/fs/cgroup", "cpu.max", fmt.Sprintf("%d 100000", int(cores*100_000))},
	} {
		dir := filepath.Join(g.root, fmt.Sprintf("lathe-bench-%d", os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		remove := func() { _ = os.Remove(dir) } // it is empty once the server has ended
		if os.WriteFile(filepath.Join(dir, g.file), []byte(g.value), 0o600) != nil {
			remove()
			continue
		}
		moved := true
		for _, p := range append(childrenOf(pid), pid) {
			moved = moved && os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(p)), 0o600) == nil
		}
		if moved {
			return fmt.Sprintf("%g cores, by a control group", cores), remove, nil
		}
	}
	var set unix.CPUSet
	whole := int(math.Ceil(cores))
	for i := range whole {
		set.Set(i)
	}
	for _, p := range append(childrenOf(pid), pid) {
		if err := unix.SchedSetaffinity(p, &set); err != nil {
			return "", nil, err
		}
	}
	return fmt.Sprintf("%d cores, by affinity", whole), func() {}, nil
}

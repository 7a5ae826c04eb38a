package app

import (
	"cmp"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// inflightBytes returns serve.max_inflight_bytes for [server.Limits]. 0, the default, means a quarter of the memory that the program may
// use.
func inflightBytes(set int64) int64 { return cmp.Or(set, memoryLimit("/")/4) }

// memoryLimit returns the memory that the program may use, in bytes: GOMEMLIMIT if set, else the smaller of the limits of the cgroup and
// the memory of the machine; 0: unknown. root is the root of the file system, for tests.
func memoryLimit(root string) int64 {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return limit
	}
	least := int64(math.MaxInt64)
	for _, n := range append(cgroupLimits(root), machineMemory(root)) {
		if n > 0 {
			least = min(least, n)
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

// memoryFiles say where the memory limit of a group is, by the controllers of the group: version 2 names none.
var memoryFiles = map[string]struct{ mount, file string }{
	"":       {"sys/fs/cgroup", "memory.max"},
	"memory": {"sys/fs/cgroup/memory", "memory.limit_in_bytes"},
}

// cgroupLimits returns the memory limits of the cgroup of the program and of its parents, for cgroup versions 1 and 2. The program's groups
// are lines ID:CONTROLLERS:PATH, such as 9:memory:/user.slice in version 1 and 0::/user.slice in version 2.
func cgroupLimits(root string) (limits []int64) {
	groups, _ := os.ReadFile(path.Join(root, "proc/self/cgroup")) // only Linux has the file
	for line := range strings.Lines(string(groups)) {
		_, line, _ = strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(line, ":")
		at, known := memoryFiles[controllers]
		if !known || group == "" {
			continue
		}
		for group = path.Join("/", group); ; group = path.Dir(group) {
			text, _ := os.ReadFile(path.Join(root, at.mount, group, at.file))
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil { // otherwise there is no limit
				limits = append(limits, n)
			}
			if group == "/" {
				break
			}
		}
	}
	return limits
}

// machineMemory returns the memory of the machine in bytes; 0: unknown.
func machineMemory(root string) int64 {
	text, _ := os.ReadFile(path.Join(root, "proc/meminfo")) // only Linux has the file
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}

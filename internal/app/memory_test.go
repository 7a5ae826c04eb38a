package app

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

// The least of the limits counts: of the cgroups around the program, in both versions, and of the machine.
func TestMemoryLimit(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"machine":        {map[string]string{"proc/meminfo": "MemFree: 1 kB\nMemTotal:       4096 kB\n", "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n"}, 4 << 20},
		"cgroup":         {map[string]string{"proc/meminfo": "MemTotal: 4096 kB\n", "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "2097152\n"}, 2 << 20},
		"cgroup outside": {map[string]string{"proc/meminfo": "MemTotal: 4096 kB\n", "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "1048576\n"}, 1 << 20},
		"namespace":      {map[string]string{"proc/meminfo": "MemTotal: 4096 kB\n", "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1048576\n"}, 1 << 20},
		"version 1":      {map[string]string{"proc/meminfo": "MemTotal: 4096 kB\n", "proc/self/cgroup": "5:cpu:/\n4:memory:/x\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "1048576\n"}, 1 << 20},
		"unknown":        {nil, 0},
	} {
		root := t.TempDir()
		for file, text := range c.files {
			file = filepath.Join(root, filepath.FromSlash(file))
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := memoryLimit(root); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30))
	if got := inflightBytes(0); got != 1<<28 || inflightBytes(5) != 5 {
		t.Errorf("with GOMEMLIMIT: %d", got)
	}
}

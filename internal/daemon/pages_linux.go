package daemon

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// releasePages lets go of the program's own pages: most of those that the start went through are not needed
// again, and those that are come back from the file when they are touched. What the process has
// written to is never let go of.
func releasePages() {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return // without /proc the pages stay, and nothing else changes
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	for _, m := range untouched(bufio.NewScanner(f), exe) {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.start, m.size, syscall.MADV_DONTNEED) // advice only: on error the pages stay in memory
	}
}

// A mapping is a part of the process's memory.
type mapping struct{ start, size uintptr }

// untouched returns the mappings of a file, in the form of smaps, that cannot be written to and in
// which no page differs from the file.
func untouched(smaps *bufio.Scanner, file string) (found []mapping) {
	var m mapping
	for smaps.Scan() {
		words := strings.Fields(smaps.Text())
		switch {
		case len(words) < 3:
		case words[0] == "Anonymous:":
			if m.size > 0 && words[1] == "0" {
				found = append(found, m)
			}
			m = mapping{}
		case !strings.HasSuffix(words[0], ":"): // address, permissions, offset, device, inode, path
			m = mapping{}
			_, path, ok := strings.Cut(smaps.Text(), "/")
			from, to, _ := strings.Cut(words[0], "-")
			start, err := strconv.ParseUint(from, 16, strconv.IntSize)
			end, err2 := strconv.ParseUint(to, 16, strconv.IntSize)
			if ok && "/"+path == file && !strings.Contains(words[1], "w") && err == nil && err2 == nil && start < end {
				m = mapping{uintptr(start), uintptr(end - start)}
			}
		}
	}
	return found
}

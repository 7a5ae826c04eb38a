package daemon

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// releasePages releases the unmodified pages of the program file from memory: most of those used in the start are not used again, and the
// kernel reads the others from the file when they are accessed. Modified pages are never released.
func releasePages() {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return // without /proc no page is released
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	for _, m := range untouched(bufio.NewScanner(f), exe) {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.start, m.size, syscall.MADV_DONTNEED) // only advice: after an error the pages stay in memory
	}
}

// A mapping is a part of the process's memory.
type mapping struct{ start, size uintptr }

// untouched returns the mappings of a file, from text in the format of /proc/PID/smaps, that are not writable and have no modified page.
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

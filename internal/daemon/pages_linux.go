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

// untouched returns the mappings of a file, from text in the format of /proc/PID/smaps, that are not writable and have no modified page. The
// text has for each mapping a line with address, permissions, offset, device, inode and path, and then its sizes:
//
//	00400000-0119d000 r-xp 00000000 08:01 1234        /usr/bin/lathe
//	Size:              13940 kB
//	Anonymous:             0 kB
func untouched(smaps *bufio.Scanner, file string) (found []mapping) {
	var m mapping
	for smaps.Scan() {
		words := strings.Fields(smaps.Text())
		if len(words) < 3 {
			continue
		}
		if words[0] == "Anonymous:" {
			if m.size > 0 && words[1] == "0" {
				found = append(found, m)
			}
			m = mapping{}
		} else if !strings.HasSuffix(words[0], ":") {
			_, path, _ := strings.Cut(smaps.Text(), "/")
			m = mapping{}
			if "/"+path == file && !strings.Contains(words[1], "w") {
				m = parseMapping(words[0])
			}
		}
	}
	return found
}

// parseMapping returns the mapping with an address such as 00400000-0119d000; without a size if the address is not valid.
func parseMapping(address string) (m mapping) {
	from, to, _ := strings.Cut(address, "-")
	start, err := strconv.ParseUint(from, 16, strconv.IntSize)
	end, endErr := strconv.ParseUint(to, 16, strconv.IntSize)
	if err == nil && endErr == nil && start < end {
		m = mapping{uintptr(start), uintptr(end - start)}
	}
	return m
}

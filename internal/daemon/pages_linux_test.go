package daemon

import (
	"bufio"
	"slices"
	"strings"
	"testing"
)

// Only what is the file's own, byte for byte, and stays so, may be let go of: pages that were written to,
// if only while the program was loaded, would come back as they are in the file.
func TestOnlyUntouchedPagesAreLetGoOf(t *testing.T) {
	t.Parallel()
	const smaps = `00400000-01830000 r-xp 00000000 fe:00 9994308                            /opt/my lathe
Size:              20672 kB
Rss:               14144 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
01830000-02e6c000 r--p 01430000 fe:00 9994308                            /opt/my lathe
Anonymous:             4 kB
02e6c000-02f59000 rw-p 02a6c000 fe:00 9994308                            /opt/my lathe
Anonymous:             0 kB
02f60000-02f61000 r--p 00000000 fe:00 9994308                            /opt/my lathe
Anonymous:             0 kB
d8224c00000-d8225800000 r--p 00000000 00:00 0
Anonymous:             0 kB
7f0903450000-7f09036d0000 r-xp 00000000 fe:00 77                         /lib/x86_64-linux-gnu/libc.so.6
Anonymous:             0 kB
7ffc059a6000-7ffc059c7000 rw-p 00000000 00:00 0                          [stack]
Anonymous:            16 kB
`
	got := untouched(bufio.NewScanner(strings.NewReader(smaps)), "/opt/my lathe")
	want := []mapping{{0x400000, 0x1430000}, {0x2f60000, 0x1000}}
	if !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
	if got := untouched(bufio.NewScanner(strings.NewReader(smaps)), "/opt/lathe"); got != nil {
		t.Errorf("of a file that is not there: %x", got)
	}
}

// The process goes on after it.
func TestReleasePages(t *testing.T) {
	t.Parallel()
	for range 3 {
		releasePages()
	}
	if got := strings.Repeat("ab", 3); got != "ababab" {
		t.Errorf("got %q", got)
	}
}

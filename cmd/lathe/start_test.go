package main

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/testdata"
)

// maxInitBytes is what a package of ours may allocate before main begins: each start of the program pays for it. The
// runtime counts its own table of interfaces to the package during whose start it grows, in steps of up to 72 KiB.
const maxInitBytes = (96 + 72) << 10

// maxStartBytes bounds the bytes that all packages together allocate before main. Nine tenths are those of other modules: 1,660 KiB
// are those of the JSON Schema library. The program allocates 2,930 KiB, and this one, with the tests, 3,250.
const maxStartBytes = 3500 << 10

// What a package needs later, or perhaps never, is not made at the start.
func TestStartMakesLittle(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), lathePath(t), "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var output strings.Builder
	cmd.Stderr = &output
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, output.String())
	}
	line := regexp.MustCompile(`(?m)^init (github\.com/lathe-run/lathe\S*|main) @.* (\d+) bytes, \d+ allocs$`)
	found := line.FindAllStringSubmatch(output.String(), -1)
	if len(found) < 5 {
		t.Fatalf("%d packages reported their start:\n%s", len(found), output.String())
	}
	total := 0
	for _, m := range regexp.MustCompile(`(?m)^init \S+ @.* (\d+) bytes, \d+ allocs$`).FindAllStringSubmatch(output.String(), -1) {
		n, _ := strconv.Atoi(m[1]) // digits
		total += n
	}
	build, _ := debug.ReadBuildInfo()
	race := slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) // each allocation is larger then
	if t.Logf("%d bytes before main", total); total > maxStartBytes && !race {
		t.Errorf("all packages allocate %d bytes before main begins, at most %d are allowed:\n%s", total, maxStartBytes, output.String())
	}
	for _, m := range found {
		if n, err := strconv.Atoi(m[2]); err != nil || n > maxInitBytes {
			t.Errorf("%s allocates %s bytes before main begins, at most %d are allowed: make them when they are first used", m[1], m[2], maxInitBytes)
		}
	}
}

// A start with the name of a command makes that one.
func TestOneCommandIsMadeWithLittle(t *testing.T) {
	testdata.CountsAllocations(t)
	const most = 250 // of version; all commands are twenty times that
	if n := testing.AllocsPerRun(3, func() {
		commandOf(strings.NewReader(""), io.Discard, io.Discard, []string{"version"})
	}); n > most {
		t.Errorf("the command takes %.0f allocations, at most %d are allowed", n, most)
	} else {
		t.Logf("%.0f allocations", n)
	}
}

// Help and completion make all commands.
func TestCommandsAreMadeWithoutWhatTheyNeed(t *testing.T) {
	testdata.CountsAllocations(t)
	const most = 8_000 // twice that where a suite is read
	if n := testing.AllocsPerRun(3, func() { rootCommand(strings.NewReader(""), io.Discard, io.Discard, nil) }); n > most {
		t.Errorf("the commands take %.0f allocations, at most %d are allowed", n, most)
	} else {
		t.Logf("%.0f allocations", n)
	}
}

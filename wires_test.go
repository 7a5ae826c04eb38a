package lathe_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/reflecttest"
	"github.com/lathe-run/lathe/internal/wire/upstreams"
	"github.com/lathe-run/lathe/sim"
)

// A wirePlace is a file that must handle each wire.
type wirePlace struct {
	file, task string
	handles    func(text string, w *wireNames) bool
}

// wireNames are the names of a wire: its constant, its word in the configuration and the package of its codec.
type wireNames struct {
	value                 lathe.Wire
	constant, word, codec string
}

func mentions(n int) func(string, *wireNames) bool {
	return func(text string, w *wireNames) bool {
		return len(regexp.MustCompile(`lathe\.`+w.constant+`\b`).FindAllString(text, -1)) >= n
	}
}

func hasWord(format string) func(string, *wireNames) bool {
	return func(text string, w *wireNames) bool {
		return w.word != "" && regexp.MustCompile(fmt.Sprintf(format, w.word)).MatchString(text)
	}
}

var wirePlaces = []wirePlace{
	{"internal/wire/upstreams/upstreams.go", "its codec, of internal/wire/NAME", func(_ string, w *wireNames) bool {
		codec := upstreams.Of(w.value)
		return codec != nil && codec.Wire() == w.value
	}},
	{"provider/wires.go", "a constructor, and its rows in vendors and answers", mentions(3)},
	{"provider/wire_test.go", "a row in the table of wires: its address, its key and its forms", mentions(1)},
	{"internal/config/kind.go", "its word in wires", func(_ string, w *wireNames) bool { return w.word != "" }},
	{"internal/config/kind.go", "its word, with others for it, in the vocabulary that begins with openai", hasWord(`newVocabulary\("(openai=[^"]* )?%s=`)},
	{"internal/config/config.go", "what the word means, at Wire of Model", hasWord("(?s)// The protocol of the server:.*`%s`.*Wire +lathe.Wire")},
	{"docs/config.md", "make gen", hasWord("(?m)^\\| `models.NAME.wire` .*`%[1]s`.*`%[1]s`")},
	{"preset/patch.go", "its word in the list of wire", hasWord(`\{"openai", [^}]*"%s"|"%[1]s", "responses"`)},
	{"cmd/lathe/sim.go", "its word in wireWords", mentions(1)},
	{"cmd/lathe/sim.go", "its word in wireNames", hasWord(`const wireNames = "[^"]*\b%s\b`)},
	{"docs/simulator.md", "a row in the table of paths", hasWord("(?m)^\\| `%s` \\|")},
	{"sim/protocol.go", "a protocol in protocols, and its paths in sim/server.go", func(text string, w *wireNames) bool {
		return regexp.MustCompile(`(Served: +|struct\{ )` + w.codec + `\.`).MatchString(text)
	}},
	{"sim/fault_wire.go", "the faults of its own in its lists or those of sim/fault.go, with their edits in sim/edit.go", func(_ string, w *wireNames) bool {
		return slices.ContainsFunc(sim.Faults(), func(f sim.Fault) bool { return slices.Contains(f.Wires, w.value) })
	}},
	{"lab/verify/verify_test.go", "the list of wires: what a healthy model and each fault score", mentions(1)},
}

// Each place handles each wire. The failure for a wire that is missing in one place lists all places.
func TestEveryWireIsHandled(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, w := range wireNamesOf(t, read) {
		var list strings.Builder
		complete := true
		for _, p := range wirePlaces {
			state := "ok      "
			if !p.handles(read(p.file), w) {
				complete, state = false, "MISSING "
			}
			fmt.Fprintf(&list, "  %s  %-38s %s\n", state, p.file, p.task)
		}
		if !complete {
			t.Errorf("lathe.%s is not handled everywhere:\n%s"+
				"  decide    internal/config/load.go, docs/presets.md      which address has this wire by default (wireAt), and which profile?\n"+
				"  decide    server/protocol.go, bench/wires.go   do clients speak it to the gateway, and is it measured?\n"+
				"  decide    lab/doctor, lab/eval, internal/conformance   which probes, faults and official clients are for it?",
				w.constant, list.String())
		}
	}
}

func wireNamesOf(t *testing.T, read func(string) string) (out []*wireNames) {
	t.Helper()
	kinds := read("internal/config/kind.go")
	files, err := filepath.Glob("internal/wire/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^\t(Wire\w+) +Wire = "(\w+)"`).FindAllStringSubmatch(read("model.go"), -1)
	if len(names) != len(reflecttest.Constants(t, "model.go", "Wire")) || len(names) < 4 {
		t.Fatalf("model.go has wires that are not found: %q", names)
	}
	for _, m := range names {
		w := &wireNames{constant: m[1], value: lathe.Wire(m[2])}
		if word := regexp.MustCompile(`"(\w+)": lathe\.` + w.constant + `\b`).FindStringSubmatch(kinds); word != nil {
			w.word = word[1]
		}
		for _, file := range files {
			if strings.Contains(read(file), "Wire() lathe.Wire { return lathe."+w.constant+" }") {
				w.codec = filepath.Base(filepath.Dir(file))
			}
		}
		out = append(out, w)
	}
	return out
}

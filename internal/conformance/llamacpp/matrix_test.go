package llamacpp

import (
	"flag"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
)

var full = flag.Bool("full", false, "try every template in every mode, and repeat more often")

// templates lists the models and the dialects in which they write calls.
var templates = []struct {
	model, dialect string
	nineLetterIDs  bool
}{
	{"qwen3", "hermes", false},
	{"glm46", "glm", false},
	{"gptoss", "harmony", false},
	{"nemo", "mistral", true},
	{"r7b", "command-r7b", false},
	{"q3coder", "qwen3-coder", false},
	{"llama31", "llama3-json", false},
	{"hermes2", "hermes", false},
	{"mistral32", "mistral", true},
}

// marks choose what the models write.
var marks = []string{"", "@@par", "@@plain", "@@bad", "@@unknown", "@@fence", "@@think", "@@loop", "@@longcall", "@@noargs", "@@step", "@@cutcall", "@@leak", "@@empty", "@@blank"}

// essential are the marks that every template is tried with: those that earlier versions failed at, and a plain call.
var essential = []string{"", "@@bad", "@@unknown", "@@cutcall", "@@blank"}

// some returns the essential marks and two of the others: nine templates have all of them in turn.
func some(template int) []string {
	others := slices.DeleteFunc(slices.Clone(marks), func(m string) bool { return slices.Contains(essential, m) })
	return append(slices.Clone(essential), others[2*template%len(others)], others[(2*template+1)%len(others)])
}

// The quick matrix has every mark, each of the essential ones for every template, and every mode.
func TestQuickMatrixHasEveryMark(t *testing.T) {
	seen := map[string]int{}
	for i := range templates {
		for _, m := range some(i) {
			seen[m]++
		}
	}
	for _, m := range marks {
		if seen[m] == 0 || slices.Contains(essential, m) && seen[m] != len(templates) {
			t.Errorf("%q is tried with %d of %d templates", m, seen[m], len(templates))
		}
	}
}

// raw makes the server leave calls in the text.
var raw = []string{"--skip-chat-parsing", "--special"}

// Whatever a model writes, and in whatever way Lathe reaches it, the server accepts what Lathe sends next: no run ends upstream_error.
func TestMatrix(t *testing.T) {
	for i, template := range templates {
		modes := []string{"native", template.dialect, "auto"}
		if !*full {
			modes = modes[i%len(modes) : i%len(modes)+1]
		}
		for _, mode := range modes {
			t.Run(template.model+"/"+mode, func(t *testing.T) {
				var flags []string
				if mode != "native" {
					flags = raw
				}
				s := start(t, template.model, flags...)
				reach := setup{url: s.url, model: template.model, dialect: mode, nineLetterIDs: template.nineLetterIDs}
				list := some(i)
				if *full {
					list = marks
				}
				each(list, func(mark string) {
					out := reach.run(t, strings.TrimSpace(mark+" go"), nil)
					if out.Reason == lathe.ReasonInternal || out.Reason == lathe.ReasonUpstreamError {
						t.Errorf("%q: %s", mark, out.words())
						return
					}
					t.Logf("%q: %s", mark, out.words())
				})
			})
		}
	}
}

// each calls do with each of list, as many at a time as a server has slots, and returns once all have returned.
func each(list []string, do func(string)) {
	var working sync.WaitGroup
	next := make(chan string)
	for range slots {
		working.Go(func() {
			for one := range next {
				do(one)
			}
		})
	}
	for _, one := range list {
		next <- one
	}
	close(next)
	working.Wait()
}

package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/secret"
	"github.com/lathe-run/lathe/internal/wire/fleet"
)

// A Fleet is workers that show the same token, and what they may do.
type Fleet struct {
	Name  string
	Token secret.Secret
	// Tools are the names that its workers may serve: exact, or the beginning of names with a * behind. nil: none.
	Tools []string
	// Effects are those that are believed when a worker claims them for a tool. A tool with another one counts as writing.
	Effects []lathe.Effect
	// Keys are those whose runs have the tools; nil: everybody's. For the others they are not there.
	Keys []string
	// MaxConcurrency bounds the calls that one of its workers has at once; 0: the worker says how many.
	MaxConcurrency int
}

// fleets are those that are known now.
type fleets struct {
	all    []Fleet
	hashes [][sha256.Size]byte // of the tokens
}

func newFleets(in []Fleet) (*fleets, error) {
	out := &fleets{all: slices.Clone(in)}
	names := map[string]bool{}
	for i := range out.all {
		f := &out.all[i]
		f.Tools, f.Effects, f.Keys = slices.Clone(f.Tools), slices.Clone(f.Effects), slices.Clone(f.Keys)
		text := f.Token.Reveal()
		hash := sha256.Sum256([]byte(text))
		switch {
		case f.Name == "" || strings.Contains(f.Name, "/"):
			return nil, errors.New("workers have no name, or one with a slash")
		case names[f.Name]:
			return nil, fmt.Errorf("workers %s are named twice", f.Name)
		case len(text) < minSecret:
			return nil, fmt.Errorf("the token of the workers %s is shorter than %d characters", f.Name, minSecret)
		case slices.Contains(out.hashes, hash):
			return nil, fmt.Errorf("the token of the workers %s is the same as that of others", f.Name)
		}
		names[f.Name] = true
		out.hashes = append(out.hashes, hash)
	}
	return out, nil
}

// of returns the fleet whose token the request shows. All tokens are compared, in a time that says
// nothing of them.
func (s *fleets) of(r *http.Request) *Fleet {
	shown, ok := bearer(r)
	if !ok {
		return nil
	}
	hash := sha256.Sum256([]byte(shown))
	found := -1
	for i := range s.hashes {
		if subtle.ConstantTimeCompare(hash[:], s.hashes[i][:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return nil
	}
	return &s.all[found]
}

// has reports whether the fleet is still known as it was.
func (s *fleets) has(f *Fleet) bool {
	for i := range s.all {
		if s.all[i].Name == f.Name {
			return reflect.DeepEqual(s.all[i], *f)
		}
	}
	return false
}

// named reports whether there is a fleet of that name.
func (s *fleets) named(name string) bool {
	return slices.ContainsFunc(s.all, func(f Fleet) bool { return f.Name == name })
}

func (f *Fleet) may(tool string) bool {
	return slices.ContainsFunc(f.Tools, func(p string) bool {
		head, any := strings.CutSuffix(p, "*")
		return p == tool || any && strings.HasPrefix(tool, head)
	})
}

// admit returns the tools that the fleet may serve, with the effects that are believed, and why it may not serve the others.
func (f *Fleet) admit(offers []lathe.WorkerTool) (tools []lathe.WorkerTool, refused map[string]string) {
	refused = map[string]string{}
	seen := map[string]bool{}
	for _, t := range offers {
		switch {
		case !toolName(t.Name):
			refused[clip(t.Name, 64)] = "a name is 1 to 64 of the characters a-z, A-Z, 0-9, _ and -"
			continue
		case !f.may(t.Name):
			refused[t.Name] = "the token of " + f.Name + " may not serve it: workers." + f.Name + ".tools in the configuration says what it may"
			continue
		case seen[t.Name]:
			refused[t.Name] = "it is offered twice"
			continue
		}
		seen[t.Name] = true
		if !slices.ContainsFunc(f.Effects, func(e lathe.Effect) bool { return e.String() == t.Effect }) {
			t.Effect = lathe.Writes.String()
		}
		t.Principals = f.Keys // whatever the worker says
		tools = append(tools, t)
	}
	return tools, refused
}

// toolName reports whether a tool may have the name.
func toolName(s string) bool { return fleet.ValidName(s) && !strings.Contains(s, ".") }

func clip(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return s
}

package workers

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/middleware"
	"github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/internal/wire/workers"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/secret"
)

// A Pool is the set of workers that authenticate with the same token, and their permissions.
type Pool struct {
	Name  string
	Token secret.Secret
	// Tools are the names of the tools that its workers may serve: exact names, or prefixes that end with *. nil: none.
	Tools []string
	// Effects are the effects that the server accepts from a worker for its tools. A tool with any other effect counts as
	// writing.
	Effects []lathe.Effect
	// Keys are the keys whose runs can use the tools; nil: all. In the runs of other keys the tools do not exist.
	Keys []string
	// MaxConcurrency bounds the concurrent calls of each worker; 0: the worker sets its own limit.
	MaxConcurrency int
}

// pools are the worker pools of the current configuration.
type pools struct {
	all    []Pool
	tokens middleware.Tokens // tokens of all, with the same indexes
}

func newPools(in []Pool) (*pools, error) {
	out := &pools{all: slices.Clone(in)}
	for i := range out.all {
		f := &out.all[i]
		f.Tools, f.Effects, f.Keys = slices.Clone(f.Tools), slices.Clone(f.Effects), slices.Clone(f.Keys)
		if strings.Contains(f.Name, "/") {
			return nil, fmt.Errorf("the name of the worker token %s has a slash", f.Name)
		}
		if err := out.tokens.Add("worker token", f.Name, f.Token); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// authenticate returns the pool whose token the request has, or a problem with status 401.
func (s *pools) authenticate(r *http.Request) (*Pool, *problem.Problem) {
	i, _ := s.tokens.Find(r)
	if i < 0 {
		return nil, problem.New(http.StatusUnauthorized, "invalid_worker_token", "Send the token of a worker: Authorization: Bearer TOKEN. It stands under workers in lathe.yaml.")
	}
	return &s.all[i], nil
}

// has reports whether the configuration has an equal pool. reflect.DeepEqual cannot compare tokens, because a secret contains a function.
func (s *pools) has(f *Pool) bool {
	return slices.ContainsFunc(s.all, func(own Pool) bool {
		before, same := *f, own.Token.Equal(f.Token)
		own.Token, before.Token = secret.Secret{}, secret.Secret{}
		return same && reflect.DeepEqual(own, before)
	})
}

// named reports whether there is a worker pool with that name.
func (s *pools) named(name string) bool {
	return slices.ContainsFunc(s.all, func(f Pool) bool { return f.Name == name })
}

func (f *Pool) may(tool string) bool {
	return slices.ContainsFunc(f.Tools, func(p string) bool {
		head, any := strings.CutSuffix(p, "*")
		return p == tool || any && strings.HasPrefix(tool, head)
	})
}

// admit returns the offered tools that the pool may serve, with the effects that the server accepts, and the reason by name for each tool
// that it may not serve.
func (f *Pool) admit(offers []remote.Tool) (tools []remote.Tool, refused map[string]string) {
	refused = map[string]string{}
	seen := map[string]bool{}
	for _, t := range offers {
		switch {
		case !toolName(t.Name):
			refused[text.Cut(t.Name, 64)] = "a name is 1 to 64 of the characters a-z, A-Z, 0-9, _ and -"
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
		t.Principals = f.Keys // the worker's own value is ignored
		tools = append(tools, t)
	}
	return tools, refused
}

// toolName reports whether s is a valid tool name.
func toolName(s string) bool { return workers.ValidName(s) && !strings.Contains(s, ".") }

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
		p := &out.all[i]
		p.Tools, p.Effects, p.Keys = slices.Clone(p.Tools), slices.Clone(p.Effects), slices.Clone(p.Keys)
		if strings.Contains(p.Name, "/") {
			return nil, fmt.Errorf("the name of the worker token %s has a slash", p.Name)
		}
		if err := out.tokens.Add("worker token", p.Name, p.Token); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// authenticate returns the pool whose token the request has, or a problem with status 401.
func (ps *pools) authenticate(r *http.Request) (*Pool, *problem.Problem) {
	i, _ := ps.tokens.Find(r)
	if i < 0 {
		return nil, problem.New(http.StatusUnauthorized, "invalid_worker_token", "Send the token of a worker: Authorization: Bearer TOKEN. It stands under workers in lathe.yaml.")
	}
	return &ps.all[i], nil
}

// has reports whether the configuration has an equal pool. reflect.DeepEqual cannot compare tokens, because a secret contains a function.
func (ps *pools) has(p *Pool) bool {
	return slices.ContainsFunc(ps.all, func(own Pool) bool {
		before, same := *p, own.Token.Equal(p.Token)
		own.Token, before.Token = secret.Secret{}, secret.Secret{}
		return same && reflect.DeepEqual(own, before)
	})
}

// may reports whether the workers of the pool may serve a tool.
func (p *Pool) may(tool string) bool {
	return slices.ContainsFunc(p.Tools, func(pattern string) bool {
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		return pattern == tool || isPrefix && strings.HasPrefix(tool, prefix)
	})
}

// admit returns the offered tools that the pool may serve, with the effects that the server accepts, and the reason by name for each tool
// that it may not serve.
func (p *Pool) admit(offers []remote.Tool) (tools []remote.Tool, refused map[string]string) {
	refused = map[string]string{}
	seen := map[string]bool{}
	for _, t := range offers {
		switch {
		case !toolName(t.Name):
			refused[text.Cut(t.Name, 64)] = "a name is 1 to 64 of the characters a-z, A-Z, 0-9, _ and -"
			continue
		case !p.may(t.Name):
			refused[t.Name] = "the token of " + p.Name + " may not serve it: workers." + p.Name + ".tools in the configuration says what it may"
			continue
		case seen[t.Name]:
			refused[t.Name] = "it is offered twice"
			continue
		}
		seen[t.Name] = true
		if !slices.ContainsFunc(p.Effects, func(e lathe.Effect) bool { return e.String() == t.Effect }) {
			t.Effect = lathe.Writes.String()
		}
		t.Principals = p.Keys // the worker's own value is ignored
		tools = append(tools, t)
	}
	return tools, refused
}

// toolName reports whether s is a valid tool name.
func toolName(s string) bool { return workers.ValidName(s) && !strings.Contains(s, ".") }

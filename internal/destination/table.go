package destination

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
)

// A Rule is a row for some destinations, with the source of its facts.
type Rule struct {
	Server string     // kind of server, one of [Servers]; "": all
	Wire   lathe.Wire // wire to which the rule is limited; "": all
	// Family is a family of models (claude, gemini, gpt, o, mistral), with its variant after a hyphen (claude-opus); "": all. From and To
	// are the first and the last of its versions as major*100 + minor, such as 405 for 4.5; 0: no bound. If From or To is set, the rule
	// does not apply to a model of unknown version.
	Family   string
	From, To int
	Row
	Source string // documents or issues that state the facts
	Read   string // date on which the source was read
}

// A Server is a kind of model server.
type Server struct {
	Name string
	// Hosts are its host names. One that begins with . or - is the end of a host name. It is empty for servers that users run themselves.
	Hosts []string
}

//go:embed rules.json
var table []byte

// Servers returns the kinds of servers. The caller must not change them.
func Servers() []Server { return known().servers }

// Rules returns the rules: those of each wire for unknown servers, then those of kinds of servers, then those of models. If several apply, a
// later one overrides the columns that it sets. The caller must not change them.
func Rules() []Rule { return known().rules }

type registry struct {
	servers []Server
	rules   []Rule
}

var known = sync.OnceValue(readTable)

// readTable reads the table. The columns of a rule are written as [Accepts] reads them.
func readTable() registry {
	var file struct {
		Servers []Server
		Rules   []struct {
			Rule
			Accepts map[string]string
		}
	}
	err := json.Unmarshal(table, &file)
	rules := make([]Rule, len(file.Rules))
	for i, r := range file.Rules {
		var wrong error
		r.Row, wrong = Accepts(r.Accepts)
		rules[i], err = r.Rule, errors.Join(err, wrong)
	}
	if err != nil {
		panic(err) // cannot happen: each test of this package reads the table
	}
	return registry{file.Servers, rules}
}

// Check returns an error if server is no kind of server or accepts has an unknown rule, with key, the name of the setting at fault. server
// may be "".
func Check(server string, accepts map[string]string) (key string, err error) {
	if _, err := Accepts(accepts); err != nil {
		return "accepts", err
	}
	names := make([]string, len(Servers()))
	for i, s := range Servers() {
		names[i] = s.Name
	}
	if server == "" || slices.Contains(names, server) {
		return "", nil
	}
	return "destination", fmt.Errorf("unknown kind of server %.40q: %s", server, text.Suggest(server, names, "there are "+strings.Join(names, ", ")))
}

// aliases are profiles of package preset whose kind of server has another name. A profile that is not listed has the name of its kind.
var aliases = map[string]string{"openai_responses": "openai", "google": "gemini"}

// Rows that are added after a server has refused a request because of the role developer, several system messages, the order of roles (the
// rules of the strictest chat templates) or an effort.
var (
	NoDeveloper = Row{Developer: no}
	OneSystem   = Row{System: one, Developer: no}
	StrictRoles = Row{System: one, Developer: no, Turns: alternate}
	NoThinking  = Row{Thinking: thinkingNone}
)

// For returns the row of a model on a wire. server is a kind of server or a profile of package preset. If it is "", the host name decides
// or, failing that, the vendor of the model, if its models are known to run on one kind of server. For an unknown server, only the rules of
// the wire and of the model apply.
func For(w lathe.Wire, server, host, model string) Row {
	w = wireOf(w)
	f := familyOf(model)
	server = cmp.Or(aliases[server], server)
	if server == "" {
		server = serverOf(host)
	}
	if server == "" && (f.name == "gpt" || f.name == "o") {
		server = "openai"
	}
	var r Row
	rules := Rules()
	for i := range rules {
		if rules[i].fits(w, server, f) {
			r = r.With(&rules[i].Row)
		}
	}
	return r
}

// serverOf returns the kind of the server with a host name, or "" if it is not known.
func serverOf(host string) string {
	host, _, _ = strings.Cut(strings.ToLower(host), ":")
	for _, s := range Servers() {
		for _, end := range s.Hosts {
			if host == end || (end[0] == '.' || end[0] == '-') && strings.HasSuffix(host, end) {
				return s.Name
			}
		}
	}
	return ""
}

func (r *Rule) fits(w lathe.Wire, server string, f family) bool {
	if r.Wire != "" && r.Wire != w {
		return false
	}
	if r.Server != "" && r.Server != server {
		return false
	}
	if r.Family == "" {
		return true
	}
	name, variant, _ := strings.Cut(r.Family, "-")
	if name != f.name || variant != "" && variant != f.variant {
		return false
	}
	if r.From == 0 && r.To == 0 {
		return true
	}
	return f.version >= max(r.From, 1) && (r.To == 0 || f.version <= r.To)
}

package agents

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var every = flag.Bool("agents", false, "run every agent and write the tables of docs/internals/agents.md")

// A matrix is the result of a run of every agent.
type matrix struct {
	agents []*Agent

	mu       sync.Mutex
	versions map[*Agent]string
	cells    map[*Agent]map[*scenario]string
}

func newMatrix(agents []*Agent) *matrix {
	return &matrix{agents: agents, versions: map[*Agent]string{}, cells: map[*Agent]map[*scenario]string{}}
}

func (m *matrix) version(a *Agent, version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.versions[a] = version
}

func (m *matrix) note(a *Agent, k *scenario, problem error, footnote string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cells[a] == nil {
		m.cells[a] = map[*scenario]string{}
	}
	text := "pass" + footnote
	if problem != nil {
		text = strings.ReplaceAll(problem.Error(), "\n", "; ")
	}
	m.cells[a][k] = text
}

// agentsPage is the page with the results.
var agentsPage = filepath.Join("..", "..", "..", "docs", "internals", "agents.md")

// write replaces the tables of docs/internals/agents.md, unless a part of the cases was left out.
func (m *matrix) write(t *testing.T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.agents {
		if len(m.cells[a]) < len(scenarios) {
			t.Logf("%s did not play every case: docs/internals/agents.md is not written", a.Name)
			return
		}
	}
	page, err := os.ReadFile(agentsPage)
	if err != nil {
		t.Fatal(err)
	}
	text, err := m.replaceTables(string(page), time.Now().UTC().Format(time.DateOnly))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(agentsPage, []byte(text), 0o644); err != nil {
		t.Error(err)
	}
}

// The lines between which docs/internals/agents.md has its tables. All else is written by hand.
const (
	tableBegin = "<!-- cases -->\n"
	tableEnd   = "<!-- end -->\n"
)

// replaceTables returns the page with the results in its tables. Each table has the cases whose titles are in its head.
func (m *matrix) replaceTables(page, date string) (string, error) {
	var b strings.Builder
	left := map[string]*scenario{}
	for i := range scenarios {
		left[scenarios[i].title] = &scenarios[i]
	}
	for {
		before, rest, found := strings.Cut(page, tableBegin)
		b.WriteString(before)
		if !found {
			break
		}
		table, after, closed := strings.Cut(rest, tableEnd)
		_, head, has := strings.Cut(table, "| agent |")
		if !closed || !has {
			return "", fmt.Errorf("a table has no end or no head: %q", table)
		}
		head, _, _ = strings.Cut(head, "\n")
		var cases []*scenario
		for title := range strings.SplitSeq(strings.TrimSuffix(head, "|"), "|") {
			if title = strings.TrimSpace(title); title == "wire" {
				continue
			}
			k := left[title]
			if k == nil {
				return "", fmt.Errorf("%q is no case, or is in two tables", title)
			}
			delete(left, title)
			cases = append(cases, k)
		}
		fmt.Fprintf(&b, "%sMeasured on %s.\n\n", tableBegin, date)
		m.appendTable(&b, cases)
		b.WriteString(tableEnd)
		page = after
	}
	for title := range left {
		return "", fmt.Errorf("no table has the case %q", title)
	}
	return b.String(), nil
}

// appendTable writes the table of some cases.
func (m *matrix) appendTable(b *strings.Builder, cases []*scenario) {
	b.WriteString("| agent | wire |")
	for _, k := range cases {
		fmt.Fprintf(b, " %s |", k.title)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(cases)) + "\n")
	for _, a := range m.agents {
		fmt.Fprintf(b, "| %s %s | %s |", a.Name, m.versions[a], a.Wire)
		for _, k := range cases {
			fmt.Fprintf(b, " %s |", m.cells[a][k])
		}
		b.WriteString("\n")
	}
}

// A run of all agents replaces the tables of the page and nothing else.
func TestPageOfAgentsKeepsItsText(t *testing.T) {
	page, err := os.ReadFile(agentsPage)
	if err != nil {
		t.Fatal(err)
	}
	m := newMatrix([]*Agent{{Name: "one", Wire: "chat completions"}})
	m.version(m.agents[0], "1.0")
	for i := range scenarios {
		m.note(m.agents[0], &scenarios[i], nil, fmt.Sprint(" ", i))
	}
	got, err := m.replaceTables(string(page), "2001-02-03")
	if err != nil {
		t.Fatal(err)
	}
	text := func(page string) (out []string) {
		for part := range strings.SplitSeq(page, tableBegin) {
			if _, after, found := strings.Cut(part, tableEnd); found {
				part = after
			}
			out = append(out, part)
		}
		return out
	}
	if !slices.Equal(text(got), text(string(page))) || len(text(got)) < 3 {
		t.Errorf("the text is another one:\n%s", got)
	}
	for i := range scenarios {
		if strings.Count(got, fmt.Sprintf(" pass %d |", i)) != 1 {
			t.Errorf("the case %s is not in a table once:\n%s", scenarios[i].title, got)
		}
	}
	if again, err := m.replaceTables(got, "2001-02-03"); err != nil || again != got {
		t.Errorf("%v: the second time the page is\n%s", err, again)
	}
}

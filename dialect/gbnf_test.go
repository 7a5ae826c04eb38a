package dialect_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// A gbnfNode is a part of a grammar that was read from its text.
type gbnfNode struct {
	id    int
	kind  byte // 's' sequence, 'a' alternatives, 'l' literal, 'c' class, 'r' reference, '*' repetition
	parts []*gbnfNode
	text  string
	not   bool
	spans [][2]rune
	least int
	most  int // below 0: any number
	cost  int // length of the shortest text; see costs
}

// A gbnfGrammar is a grammar in the notation of llama.cpp, read by what its documentation says.
type gbnfGrammar struct {
	rules map[string]*gbnfNode
	nodes []*gbnfNode
}

type gbnfReader struct {
	g   *gbnfGrammar
	s   string
	pos int
}

func readGBNF(t testing.TB, text string) *gbnfGrammar {
	t.Helper()
	g := &gbnfGrammar{rules: map[string]*gbnfNode{}}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		name, body, ok := strings.Cut(line, " ::= ")
		if !ok || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
			t.Fatalf("no rule: %s", line)
		}
		if g.rules[name] != nil {
			t.Fatalf("two rules %s", name)
		}
		r := &gbnfReader{g: g, s: body}
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Fatalf("%v in %s", p, line)
				}
			}()
			g.rules[name] = r.alternatives()
			if r.pos != len(r.s) {
				panic("more follows at " + r.s[r.pos:])
			}
		}()
	}
	for _, n := range g.nodes {
		if n.kind == 'r' && g.rules[n.text] == nil {
			t.Fatalf("no rule %s", n.text)
		}
	}
	if g.rules["root"] == nil {
		t.Fatal("no root")
	}
	g.costs()
	return g
}

func (r *gbnfReader) node(kind byte) *gbnfNode {
	n := &gbnfNode{id: len(r.g.nodes), kind: kind}
	r.g.nodes = append(r.g.nodes, n)
	return n
}

func (r *gbnfReader) space() {
	for r.pos < len(r.s) && r.s[r.pos] == ' ' {
		r.pos++
	}
}

func (r *gbnfReader) alternatives() *gbnfNode {
	n := r.node('a')
	for {
		n.parts = append(n.parts, r.sequence())
		if r.space(); r.pos == len(r.s) || r.s[r.pos] != '|' {
			return n
		}
		r.pos++
	}
}

func (r *gbnfReader) sequence() *gbnfNode {
	n := r.node('s')
	for {
		r.space()
		if r.pos == len(r.s) || r.s[r.pos] == '|' || r.s[r.pos] == ')' {
			if len(n.parts) == 0 {
				panic("an empty sequence")
			}
			return n
		}
		n.parts = append(n.parts, r.repeated(r.atom()))
	}
}

func (r *gbnfReader) atom() *gbnfNode {
	switch c := r.s[r.pos]; {
	case c == '(':
		r.pos++
		n := r.alternatives()
		if r.s[r.pos] != ')' {
			panic("no )")
		}
		r.pos++
		return n
	case c == '"':
		n := r.node('l')
		for r.pos++; r.s[r.pos] != '"'; {
			n.text += string(r.char())
		}
		r.pos++
		return n
	case c == '[':
		n := r.node('c')
		if r.pos++; r.s[r.pos] == '^' {
			n.not = true
			r.pos++
		}
		for r.s[r.pos] != ']' {
			from := r.char()
			to := from
			if r.s[r.pos] == '-' && r.s[r.pos+1] != ']' {
				r.pos++
				to = r.char()
			}
			n.spans = append(n.spans, [2]rune{from, to})
		}
		r.pos++
		return n
	}
	from := r.pos
	for r.pos < len(r.s) && (r.s[r.pos]|0x20 >= 'a' && r.s[r.pos]|0x20 <= 'z' || r.s[r.pos] >= '0' && r.s[r.pos] <= '9') {
		r.pos++
	}
	if from == r.pos {
		panic("what is " + r.s[r.pos:])
	}
	n := r.node('r')
	n.text = r.s[from:r.pos]
	return n
}

func (r *gbnfReader) char() rune {
	c, size := utf8.DecodeRuneInString(r.s[r.pos:])
	r.pos += size
	if c != '\\' {
		return c
	}
	c = rune(r.s[r.pos])
	r.pos++
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case '\\', '"', '[', ']':
		return c
	case 'u':
		v, err := strconv.ParseUint(r.s[r.pos:r.pos+4], 16, 16)
		if err != nil {
			panic(err)
		}
		r.pos += 4
		return rune(v)
	}
	panic("an escape that is not known: " + string(c))
}

func (r *gbnfReader) repeated(of *gbnfNode) *gbnfNode {
	if r.pos == len(r.s) {
		return of
	}
	n := &gbnfNode{kind: '*', parts: []*gbnfNode{of}}
	switch r.s[r.pos] {
	case '?':
		n.least, n.most = 0, 1
	case '*':
		n.least, n.most = 0, -1
	case '+':
		n.least, n.most = 1, -1
	case '{':
		end := strings.IndexByte(r.s[r.pos:], '}')
		least, most, two := strings.Cut(r.s[r.pos+1:r.pos+end], ",")
		r.pos += end
		n.least, _ = strconv.Atoi(least)
		switch {
		case !two:
			n.most = n.least
		case most == "":
			n.most = -1
		default:
			n.most, _ = strconv.Atoi(most)
		}
		if n.most > 2000 {
			panic("llama.cpp repeats 2000 times at most")
		}
	default:
		return of
	}
	r.pos++
	n.id = len(r.g.nodes)
	r.g.nodes = append(r.g.nodes, n)
	return n
}

const endless = 1 << 20

// costs computes the length of the shortest text of each node.
func (g *gbnfGrammar) costs() {
	for _, n := range g.nodes {
		n.cost = endless
	}
	for changed := true; changed; {
		changed = false
		for _, n := range g.nodes {
			cost := 0
			switch n.kind {
			case 'l':
				cost = len(n.text)
			case 'c':
				cost = 1
			case 'r':
				cost = g.rules[n.text].cost
			case 's':
				for _, p := range n.parts {
					cost = min(endless, cost+p.cost)
				}
			case 'a':
				cost = endless
				for _, p := range n.parts {
					cost = min(cost, p.cost)
				}
			case '*':
				cost = min(endless, n.least*n.parts[0].cost)
			}
			if cost < n.cost {
				n.cost, changed = cost, true
			}
		}
	}
}

// A walker writes random texts of a grammar.
type walker struct {
	g      *gbnfGrammar
	random *rand.Rand
	// letters are what stands for a class that excludes characters: those that it allows of them.
	letters []rune
	out     []rune
	budget  int // beyond so many characters the shortest way is taken
}

func (w *walker) walk(n *gbnfNode) {
	short := len(w.out) > w.budget
	switch n.kind {
	case 'l':
		w.out = append(w.out, []rune(n.text)...)
	case 'c':
		w.out = append(w.out, w.class(n))
	case 'r':
		w.walk(w.g.rules[n.text])
	case 's':
		for _, p := range n.parts {
			w.walk(p)
		}
	case 'a':
		p := n.parts[w.random.IntN(len(n.parts))]
		if short {
			for _, q := range n.parts {
				if q.cost < p.cost {
					p = q
				}
			}
		}
		w.walk(p)
	case '*':
		times := n.least
		for !short && (n.most < 0 || times < n.most) && w.random.IntN(3) > 0 {
			times++
		}
		for range times {
			w.walk(n.parts[0])
		}
	}
}

func (n *gbnfNode) allows(r rune) bool {
	in := false
	for _, s := range n.spans {
		in = in || s[0] <= r && r <= s[1]
	}
	return in != n.not
}

func (w *walker) class(n *gbnfNode) rune {
	for {
		r := w.letters[w.random.IntN(len(w.letters))]
		if !n.not {
			s := n.spans[w.random.IntN(len(n.spans))]
			r = s[0] + rune(w.random.IntN(int(s[1]-s[0])+1))
		}
		if n.allows(r) {
			return r
		}
	}
}

// text returns a random text.
func (w *walker) text() string {
	w.out = w.out[:0]
	w.walk(w.g.rules["root"])
	return string(w.out)
}

// accepts reports whether the text is one of the grammar.
func (g *gbnfGrammar) accepts(text string) bool {
	m := &matcher{g: g, text: []rune(text), ends: map[[2]int][]int{}}
	for _, end := range m.match(g.rules["root"], 0) {
		if end == len(m.text) {
			return true
		}
	}
	return false
}

type matcher struct {
	g    *gbnfGrammar
	text []rune
	ends map[[2]int][]int // node and place to where a text of the node may end
}

func (m *matcher) match(n *gbnfNode, at int) []int {
	key := [2]int{n.id, at}
	if ends, ok := m.ends[key]; ok {
		return ends
	}
	m.ends[key] = nil // a rule that begins with itself matches no more by that
	set := map[int]bool{}
	switch n.kind {
	case 'l':
		end := at
		for _, r := range n.text {
			if end == len(m.text) || m.text[end] != r {
				end = -1
				break
			}
			end++
		}
		if end >= 0 {
			set[end] = true
		}
	case 'c':
		if at < len(m.text) && n.allows(m.text[at]) {
			set[at+1] = true
		}
	case 'r':
		for _, end := range m.match(m.g.rules[n.text], at) {
			set[end] = true
		}
	case 's':
		set[at] = true
		for _, p := range n.parts {
			next := map[int]bool{}
			for from := range set {
				for _, end := range m.match(p, from) {
					next[end] = true
				}
			}
			set = next
		}
	case 'a':
		for _, p := range n.parts {
			for _, end := range m.match(p, at) {
				set[end] = true
			}
		}
	case '*':
		front := map[int]bool{at: true}
		for times := 0; len(front) > 0 && (n.most < 0 || times <= n.most); times++ {
			if times >= n.least {
				for end := range front {
					set[end] = true
				}
			}
			next := map[int]bool{}
			for from := range front {
				for _, end := range m.match(n.parts[0], from) {
					if end > from && (n.most >= 0 || !set[end]) {
						next[end] = true
					} else if end == from && times < n.least { // a part that may be empty
						set[from] = true
					}
				}
			}
			front = next
		}
	}
	var ends []int
	for end := range set {
		ends = append(ends, end)
	}
	m.ends[key] = ends
	return ends
}

// The reader, the walker and the matcher agree about grammars, and the matcher refuses what they do not say.
func TestGBNFWalkerAndMatcher(t *testing.T) {
	t.Parallel()
	g := readGBNF(t, "root ::= \"a\" (b1 | [x-z]{2,3} | \"\\\"q\\n\")+ c2?\nb1 ::= \"(\" b1? \")\"\nc2 ::= [^\\u0061\\u005D]\n")
	w := &walker{g: g, random: rand.New(rand.NewPCG(1, 2)), letters: []rune("ab]é"), budget: 60}
	for range 1000 {
		if text := w.text(); !g.accepts(text) {
			t.Fatalf("%q is refused", text)
		}
	}
	for text, want := range map[string]bool{"a()": true, "a(())xy": true, "axyzé": true, "a\"q\n": true, "": false, "a": false, "ax": false, "a(": false, "a()a": false, "a()]": false, "a()a)": false, "a()éé": false} {
		if g.accepts(text) != want {
			t.Errorf("%q: accepted is %v", text, !want)
		}
	}
}

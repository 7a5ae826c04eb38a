package rawjson

import "sync"

// Names is a set of known member names. It also finds names that differ only in case, which parsers that ignore case treat as known. It
// does not change after NewNames and may be used from several goroutines at once.
type Names struct {
	names  []string
	once   sync.Once         // for make: a program has many sets and uses few of them
	exact  map[string]string // name → the same name; set by make
	folded map[string]string // folded name → name; set by make
}

// NewNames returns a set of names and retains the slice. Of names that are equal under folding, [Names.Like] returns the first.
func NewNames(names ...string) *Names { return &Names{names: names} }

// make builds the maps in its first call.
func (n *Names) make() { n.once.Do(n.index) }

func (n *Names) index() {
	n.exact, n.folded = make(map[string]string, len(n.names)), make(map[string]string, len(n.names))
	for _, name := range n.names {
		n.exact[name] = name
		folded := string(AppendFold(nil, []byte(name)))
		if _, ok := n.folded[folded]; !ok {
			n.folded[folded] = name
		}
	}
}

// Has reports whether name is one of the set.
func (n *Names) Has(name string) bool {
	n.make()
	_, ok := n.exact[name]
	return ok
}

// Exact returns the name in the set that equals key, a string literal with its quotes. ok is false if the set does not have the name, or if
// key has escapes.
func (n *Names) Exact(key []byte) (name string, ok bool) {
	n.make()
	name, ok = n.exact[string(key[1:len(key)-1])]
	return name, ok
}

// Like returns the name in the set that differs from name only in case (Unicode simple case folding), or "" if none exists or name itself
// is in the set.
func (n *Names) Like(name string) string {
	if n.Has(name) {
		return ""
	}
	var buf [64]byte
	return n.folded[string(AppendFold(buf[:0], []byte(name)))]
}

// LikeKey returns the decoded text of key, a string literal, and the name that [Names.Like] finds for it, or "" twice.
func (n *Names) LikeKey(key []byte) (member, name string) {
	member = Text(key)
	if name = n.Like(member); name == "" {
		return "", ""
	}
	return member, name
}

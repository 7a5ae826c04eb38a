package rawjson

import "sync"

// Names is a set of member names that a reader knows. It finds names that another reader, which ignores case, takes
// for one of them. It is not changed after NewNames and may be used by several goroutines at once.
type Names struct {
	names  []string
	once   sync.Once         // of make: a program has many sets, and uses few
	exact  map[string]string // each name by itself; through make
	folded map[string]string // the exact name by its folded form; through make
}

// NewNames returns the set of the names given, which it keeps. Of names that are equal under folding the first counts.
func NewNames(names ...string) *Names { return &Names{names: names} }

// make makes the maps at the first call.
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

// Exact returns the name of the set that key, a string literal with its quotes, spells without escapes. ok is false if the set does
// not have it, or key has escapes.
func (n *Names) Exact(key []byte) (name string, ok bool) {
	n.make()
	name, ok = n.exact[string(key[1:len(key)-1])]
	return name, ok
}

// Text returns the text of a key of an object, a string literal, as [AppendUnquoteLossy] does. It allocates nothing for a
// name of the set that is written without escapes.
func (n *Names) Text(key []byte) string {
	if len(key) >= 2 {
		n.make()
		if name, ok := n.exact[string(key[1:len(key)-1])]; ok {
			return name
		}
	}
	return Text(key)
}

// Like returns the name of the set that name equals under Unicode simple case folding without being one itself; ""
// if there is none.
func (n *Names) Like(name string) string {
	if n.Has(name) {
		return ""
	}
	var buf [64]byte
	return n.folded[string(AppendFold(buf[:0], []byte(name)))]
}

// LikeMember returns the first member of obj for which [Names.Like] finds a name, and that name. obj must be a text
// that [Check] accepts; what is no object has no members.
func (n *Names) LikeMember(obj []byte) (member, name string) {
	for key := range Members(obj) {
		if member, name = n.LikeKey(key); name != "" {
			return member, name
		}
	}
	return "", ""
}

// LikeKey is [Names.LikeMember] for one key, a string literal.
func (n *Names) LikeKey(key []byte) (member, name string) {
	n.make()
	if _, ok := n.exact[string(key[1:len(key)-1])]; ok { // most keys have no escapes
		return "", ""
	}
	var buf [64]byte
	text, err := unquote(buf[:0], key, keepSurrogates)
	if err != nil {
		return "", ""
	}
	if name = n.Like(string(text)); name == "" {
		return "", ""
	}
	return string(text), name
}

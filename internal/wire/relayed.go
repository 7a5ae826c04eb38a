package wire

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// Changes are members of a request that are replaced when the request is relayed. Members that the request lacks are appended in the order
// in which they were set. The zero value is empty.
type Changes struct {
	names  []string
	values map[string][]byte
}

// Set sets the value of a member. An empty value has no effect.
func (c *Changes) Set(name string, value []byte) {
	if len(value) == 0 {
		return
	}
	if c.values == nil {
		c.values = map[string][]byte{}
	}
	if !c.Has(name) {
		c.names = append(c.names, name)
	}
	c.values[name] = value
}

// Override sets the overrides of req, without those for whose names except returns true, and the model's name if it is not "".
func (c *Changes) Override(req *lathe.Request, except func(name string) bool) {
	for _, m := range req.Overrides {
		if !except(m.Name) {
			c.Set(m.Name, m.Value)
		}
	}
	if req.Model != "" {
		c.Set("model", rawjson.AppendQuote(nil, req.Model))
	}
}

// Has reports whether the member is set.
func (c *Changes) Has(name string) bool { return c.values[name] != nil }

// Append appends the object body, which must be valid, with the changes. All other bytes are unchanged unless edit changes them: see
// [rawjson.AppendEdited]. edit may be nil.
func (c *Changes) Append(dst, body []byte, edit func(name string, value []byte) (key, to []byte, keep bool)) []byte {
	found := map[string]bool{}
	change := func(name string, value []byte) (key, to []byte, keep bool) {
		switch {
		case c.Has(name) && !found[name]:
			found[name] = true
			return nil, c.values[name], true
		case edit != nil:
			return edit(name, value)
		}
		return nil, value, true
	}
	return rawjson.AppendEdited(dst, body, change, func(dst []byte) []byte {
		for _, name := range c.names {
			if !found[name] {
				dst = append(JSON(dst).Key(name), c.values[name]...)
			}
		}
		return dst
	})
}

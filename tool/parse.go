package tool

import (
	"errors"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// unreadable is stage 4: argument text becomes one JSON object. Blank text and null stand for {}.
// With repair on, a fence around the object and an object written as a JSON string are unwrapped,
// once. The text of the call itself stays as it is.
func (w *Work) unreadable(c *call) (ended bool) {
	switch {
	case c.checked:
		c.args, c.parsed = trim(c.args), true
		w.conceal(c)
		return false
	case blank(c.Arguments):
		c.args, c.parsed = []byte("{}"), true
		return false
	}
	return w.parse(c, c.args)
}

// trim returns text without the white space of JSON around it.
func trim(text []byte) []byte {
	for len(text) > 0 && isSpace(text[0]) {
		text = text[1:]
	}
	for len(text) > 0 && isSpace(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	return text
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// parse checks text and keeps it as the call's argument value.
func (w *Work) parse(c *call, text []byte) (ended bool) {
	text = trim(text)
	if w.settings.Repair != lathe.RepairOff {
		if inner, ok := rawjson.UnwrapObject(text); ok {
			if w.oversizeArgs(c, len(inner)) {
				return true
			}
			text, c.repair = inner, true
		}
	}
	if err := rawjson.Check(text, rawjson.Limits{MaxDepth: w.limits.MaxJSONDepth, MaxKeys: w.limits.MaxJSONKeys}); err != nil {
		c.jsonError(w, err)
		return c.end(lathe.CodeInvalidJSON)
	}
	if text[0] != '{' {
		c.detailString("reason", "not_an_object")
		return c.end(lathe.CodeInvalidJSON)
	}
	c.args, c.parsed = text, true
	w.conceal(c)
	return false
}

// jsonError says where the text stops being acceptable.
func (c *call) jsonError(w *Work, err error) {
	var se *rawjson.SyntaxError
	if !errors.As(err, &se) {
		return
	}
	c.detailString("reason", se.Kind)
	c.detailInt("offset", int64(se.Offset))
	switch se.Kind {
	case rawjson.KindDeep:
		c.hit("max_json_depth", w.limits.MaxJSONDepth)
	case rawjson.KindKeys:
		c.hit("max_json_keys", w.limits.MaxJSONKeys)
	}
}

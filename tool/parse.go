package tool

import (
	"errors"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// readArguments is stage 4. It reads the argument text as one JSON object. Blank text and null stand for {}. With repair
// on, a fence around the object and an object written as a JSON string are unwrapped, once. The text of the call itself
// does not change.
func readArguments(c *call) ending {
	switch {
	case c.checked:
		c.args, c.parsed = trim(c.args), true
		conceal(c)
		return proceed
	case blank(c.Arguments):
		c.args, c.parsed = []byte("{}"), true
		return proceed
	}
	return parseArguments(c, c.args)
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

// parseArguments checks text and makes it the call's argument value.
func parseArguments(c *call, text []byte) ending {
	w := c.w
	text = trim(text)
	if w.settings.Repair != lathe.RepairOff {
		if inner, ok := rawjson.UnwrapObject(text); ok {
			if end := boundArguments(c, len(inner)); end != proceed {
				return end
			}
			c.repair = event.RepairJSONString
			if text[0] == '`' {
				c.repair = event.RepairCodeFence
			}
			text = inner
		}
	}
	if err := rawjson.Check(text, rawjson.Limits{MaxDepth: w.limits.MaxJSONDepth, MaxKeys: w.limits.MaxJSONKeys}); err != nil {
		c.jsonError(err)
		return fail(lathe.CodeInvalidJSON)
	}
	if text[0] != '{' {
		c.detailString("reason", "not_an_object")
		return fail(lathe.CodeInvalidJSON)
	}
	c.args, c.parsed = text, true
	conceal(c)
	return proceed
}

// jsonError adds where and why text was refused to the details for the model.
func (c *call) jsonError(err error) {
	var se *rawjson.SyntaxError
	if !errors.As(err, &se) {
		return
	}
	c.detailString("reason", se.Kind)
	c.detailInt("offset", int64(se.Offset))
	switch se.Kind {
	case rawjson.KindDeep:
		c.hit("max_json_depth", c.w.limits.MaxJSONDepth)
	case rawjson.KindKeys:
		c.hit("max_json_keys", c.w.limits.MaxJSONKeys)
	}
}

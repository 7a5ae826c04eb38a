package tool

import (
	"bytes"
	"errors"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
)

// maxWritten is the maximum length, in bytes, of the beginning of invalid arguments in the error for the model.
const maxWritten = 200

// readArguments is stage 4. It parses the argument text as one JSON object. Blank text and null count as {}. If repair is on, it repairs
// text that can be read as an object in exactly one way. The text in the call itself does not change.
func readArguments(c *call) ending {
	if blank(c.Arguments) {
		c.args, c.parsed = []byte("{}"), true
		return proceed
	}
	return parseArguments(c, c.args)
}

// trim returns text without surrounding JSON white space.
func trim(text []byte) []byte { return bytes.Trim(text, " \n\t\r") }

// parseArguments checks raw and sets it as the arguments of the call.
func parseArguments(c *call, raw []byte) ending {
	w := c.w
	raw = trim(raw)
	limits := rawjson.Limits{MaxDepth: w.limits.MaxJSONDepth, MaxKeys: w.limits.MaxJSONKeys}
	err := rawjson.Check(raw, limits)
	if w.settings.Repair != lathe.RepairOff && (err != nil || raw[0] != '{') {
		if object, mended, ok := rawjson.RepairObject(raw); ok {
			if end := boundArguments(c, len(object)); end != proceed {
				return end
			}
			c.repair = event.Repair(mended)
			raw, err = object, rawjson.Check(object, limits)
		}
	}
	if err != nil {
		c.jsonError(err)
		if c.Dialect == "" { // the history of the model contains {} in place of the text
			c.detailString("written", text.Cut(c.Arguments, maxWritten))
		}
		return fail(lathe.CodeInvalidJSON)
	}
	if raw[0] != '{' {
		c.detailString("reason", "not_an_object")
		return fail(lathe.CodeInvalidJSON)
	}
	c.args, c.parsed = raw, true
	if secrets := &c.w.secrets; secrets.store != nil {
		c.args = secrets.hide(c, raw)
	}
	return proceed
}

// jsonError adds the reason and the position of the error to the details for the model.
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

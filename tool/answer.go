package tool

import (
	"strconv"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// maxDetailBytes bounds each text among the further members of an error.
const maxDetailBytes = 1_000

// answer returns what the model is told of the call.
func (w *Work) answer(c *call) string {
	if w.settings.ResultFormat == lathe.ResultEnvelope {
		return string(c.envelope(w.settings.CompactEnvelope))
	}
	if c.code == "" {
		return c.lane.keep(c.data)
	}
	b := append(c.lane.buf[:0], `{"ok":false,"error":`...)
	b = c.appendError(b)
	if len(c.data) > 0 { // of an error that the tool itself describes
		b = append(b, `,"data":`...)
		b = c.appendData(b)
	}
	b = append(b, '}')
	c.lane.buf = b
	return string(b)
}

// envelope is the answer with all its members; compact leaves the empty ones out.
func (c *call) envelope(compact bool) []byte {
	b := append(c.lane.buf[:0], `{"ok":`...)
	b = strconv.AppendBool(b, c.code == "")
	name := c.tool
	if name == unknownTool {
		name = clip(c.Name, 64)
	}
	b = append(b, `,"tool_name":`...)
	b = appendString(b, name)
	switch {
	case len(c.data) == 0:
		if !compact {
			b = append(b, `,"data":{}`...)
		}
	case !c.text && c.data[0] == '{':
		if !compact || !hollow(c.data) {
			b = append(b, `,"data":`...)
			b = append(b, c.data...)
		}
	default:
		b = append(b, `,"data":{"value":`...)
		b = c.appendData(b)
		b = append(b, '}')
	}
	if c.truncated {
		b = append(b, `,"warnings":[{"code":"output_truncated"`...)
		b = append(b, c.detail...)
		b = append(b, `}]`...)
	} else if !compact {
		b = append(b, `,"warnings":[]`...)
	}
	if c.code != "" {
		b = append(b, `,"errors":[`...)
		b = c.appendError(b)
		b = append(b, ']')
	} else if !compact {
		b = append(b, `,"errors":[]`...)
	}
	b = append(b, '}')
	c.lane.buf = b
	return b
}

// appendError appends the error object: code, fixed text, details.
func (c *call) appendError(b []byte) []byte {
	b = append(b, `{"code":"`...)
	b = append(b, c.code...)
	b = append(b, `","message":`...)
	b = appendString(b, textOf(c.code))
	b = append(b, c.detail...)
	return append(b, '}')
}

// appendData appends the output as a JSON value.
func (c *call) appendData(b []byte) []byte {
	if c.text {
		return rawjson.AppendQuote(b, string(c.data))
	}
	return append(b, c.data...)
}

// hit notes the limit that ended the call, by its config key, and tells the model its number.
func (c *call) hit(key string, limit int) {
	c.limitKey = key
	c.detailString("limit", key)
	c.detailInt("max", int64(limit))
}

// sizeHit is hit for a limit in bytes.
func (c *call) sizeHit(key string, size, limit int) {
	c.limitKey = key
	c.detailString("limit", key)
	c.detailInt("bytes", int64(size))
	c.detailInt("max_bytes", int64(limit))
}

func (c *call) detailInt(name string, v int64) {
	c.detailName(name)
	c.detail = strconv.AppendInt(c.detail, v, 10)
}

func (c *call) detailString(name, v string) {
	c.detailName(name)
	c.detail = appendString(c.detail, v)
}

func (c *call) detailRaw(name string, v []byte) {
	c.detailName(name)
	c.detail = append(c.detail, v...)
}

// detailName takes names that need no escapes.
func (c *call) detailName(name string) {
	c.detail = append(append(append(c.detail, `,"`...), name...), `":`...)
}

func appendString(b []byte, s string) []byte { return rawjson.AppendQuote(b, s) }

// clip returns the first n bytes of s, cut at a rune.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

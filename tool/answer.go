package tool

import (
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
)

// maxDetailBytes is the maximum length of each text in the details of an error.
const maxDetailBytes = 1_000

// answer returns the content of the tool message for the call.
func answer(c *call) string {
	if c.w.settings.ResultFormat == lathe.ResultEnvelope {
		return string(c.envelope())
	}
	if c.code == "" {
		return string(c.data)
	}
	b := []byte(`{"ok":false,"error":`)
	b = c.appendError(b)
	if len(c.data) > 0 { // the tool returned an error with data
		b = append(b, `,"data":`...)
		b = c.appendData(b)
	}
	return string(append(b, '}'))
}

// envelope returns the answer with all members, or, if the settings say so, without empty ones.
func (c *call) envelope() []byte {
	compact := c.w.settings.CompactEnvelope
	b := []byte(`{"ok":`)
	b = strconv.AppendBool(b, c.code == "")
	name := c.tool
	if name == unknownTool {
		name = text.Cut(c.Name, 64)
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
	return append(b, '}')
}

// appendError appends the error object: code, fixed text and details.
func (c *call) appendError(b []byte) []byte {
	b = append(b, `{"code":"`...)
	b = append(b, c.code...)
	b = append(b, `","message":`...)
	b = appendString(b, texts[c.code])
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

// hit records the limit that ended the call, by its config key, and adds key and value to the details for the model.
func (f *failure) hit(key string, limit int) {
	f.limitKey = key
	f.detailString("limit", key)
	f.detailInt("max", int64(limit))
}

// sizeHit does the same as hit, for a limit in bytes.
func (f *failure) sizeHit(key string, size, limit int) {
	f.limitKey = key
	f.detailString("limit", key)
	f.detailInt("bytes", int64(size))
	f.detailInt("max_bytes", int64(limit))
}

func (f *failure) detailInt(name string, v int64) {
	f.detailName(name)
	f.detail = strconv.AppendInt(f.detail, v, 10)
}

func (f *failure) detailString(name, v string) {
	f.detailName(name)
	f.detail = appendString(f.detail, v)
}

// detailName appends a comma and a member name, which must need no escapes.
func (f *failure) detailName(name string) {
	f.detail = append(append(append(f.detail, `,"`...), name...), `":`...)
}

func appendString(b []byte, s string) []byte { return rawjson.AppendQuote(b, s) }

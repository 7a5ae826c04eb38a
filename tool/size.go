package tool

import (
	"strconv"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// boundArguments is stage 3: the limit on the argument text. size is its length in bytes.
func boundArguments(c *call, size int) ending {
	limit := c.w.limits.MaxToolArgsBytes
	if size <= limit {
		return proceed
	}
	c.sizeHit("max_tool_args_bytes", size, limit)
	return fail(lathe.CodeArgumentsTooLarge)
}

// maxBlobBytes is the maximum size of the blobs of an output, in bytes.
const maxBlobBytes = 8 << 20

// boundOutput is stage 13: the limit on the output for the model, in bytes. A JSON string is shown as its text, and counts as that.
// According to the settings, a larger output is an error or is truncated.
func boundOutput(c *call) ending {
	w := c.w
	if len(c.data) > 0 && c.data[0] == '"' {
		if text, err := rawjson.AppendUnquote(nil, c.data); err == nil {
			c.data, c.text = text, true
		}
	}
	c.size = len(c.data)
	if blobs := blobBytes(c.blobs); blobs > maxBlobBytes {
		c.sizeHit("max_blob_bytes", blobs, maxBlobBytes)
		c.data, c.blobs = nil, nil
		return c.failUnlessFailed(lathe.CodeOutputTooLarge)
	}
	limit := w.limits.MaxOutputBytes
	if c.size <= limit {
		return proceed
	}
	c.sizeHit("max_tool_output_bytes", c.size, limit)
	if w.settings.OversizeOutput == lathe.OversizeTruncate {
		if cut, ok := truncate(c.data, limit); ok {
			c.data, c.text, c.truncated = cut, true, true
			return proceed
		}
	}
	c.data, c.blobs = nil, nil
	return c.failUnlessFailed(lathe.CodeOutputTooLarge)
}

// failUnlessFailed ends the call with the code, unless the tool itself returned an error, which then remains.
func (o *output) failUnlessFailed(code lathe.Code) ending {
	if o.toolCode != "" {
		return proceed
	}
	return fail(code)
}

func blobBytes(blobs []lathe.Blob) (n int) {
	for _, b := range blobs {
		n += len(b.Data) + len(b.URL)
	}
	return n
}

// truncate returns the first three quarters and the last quarter of limit bytes of text, reduced by the marker between them. It does not
// split characters. ok is false if limit is too small for the marker.
func truncate(text []byte, limit int) (cut []byte, ok bool) {
	const before, of, after = "\n[... output cut: ", " of ", " bytes left out ...]\n"
	digits := len(strconv.Itoa(len(text)))
	room := limit - (len(before) + digits + len(of) + digits + len(after))
	if room < 4 {
		return nil, false
	}
	head := room * 3 / 4
	tail := len(text) - (room - head)
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	cut = make([]byte, 0, limit)
	cut = append(cut, text[:head]...)
	cut = append(cut, before...)
	cut = strconv.AppendInt(cut, int64(tail-head), 10)
	cut = append(cut, of...)
	cut = strconv.AppendInt(cut, int64(len(text)), 10)
	cut = append(cut, after...)
	return append(cut, text[tail:]...), true
}

package tool

import (
	"strconv"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// boundArguments is stage 3. size is that of the argument text, in bytes.
func boundArguments(c *call, size int) ending {
	limit := c.w.limits.MaxToolArgsBytes
	if size <= limit {
		return proceed
	}
	c.sizeHit("max_tool_args_bytes", size, limit)
	return fail(lathe.CodeArgumentsTooLarge)
}

// maxBlobBytes bounds the content of an output that is not text.
const maxBlobBytes = 8 << 20

// boundOutput is stage 13. It bounds the bytes of what the model may see. A string of JSON is shown as its text, and
// counts as that. What is too large is an error or is cut, as the settings say.
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

// failUnlessFailed ends the call with the code, unless the tool itself returned an error: that error stands.
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

func tooManyBytes(blobs []lathe.Blob) bool { return blobBytes(blobs) > maxBlobBytes }

// truncate keeps three quarters of limit from the head and one quarter from the tail of text, less
// the marker between them, and cuts no rune in two. ok is false if limit is too small for the marker.
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

package mcptool

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// Limits of a result: content blocks, and those that are blobs.
const (
	maxBlocks = 1_000
	maxBlobs  = 64
)

var errNoResult = errors.New("mcptool: the result is not one of tools/call")

// output converts a tools/call result, which is valid JSON, to an output. Numbers keep their digits.
//
// The data is structuredContent, if there is any. Without it, a single text block is the data: as the object or array that it contains, or
// as a string. Several text blocks are joined by line ends. If there are blocks of other kinds, the data is an object with the member
// `content`, in which images, audio and binary resources have their type and size; their bytes are blobs.
func output(result []byte) (*lathe.Output, error) {
	if rawjson.Kind(result) != '{' {
		return nil, errNoResult
	}
	if kind := rawjson.At(result, "resultType"); rawjson.Kind(kind) == '"' && rawjson.Text(kind) != "complete" {
		return nil, errNoResult
	}
	out := &lathe.Output{IsError: string(rawjson.At(result, "isError")) == "true"}
	blocks, texts, err := readContent(result, out)
	if err != nil {
		return nil, err
	}
	structured := rawjson.At(result, "structuredContent")
	switch {
	case structured != nil && string(structured) != "null":
		out.Data = withoutCopies(structured, out.Blobs)
	case blocks != nil:
		out.Data = append(append([]byte(`{"content":`), blocks...), '}')
	case len(texts) == 1 && isJSON(texts[0]):
		out.Data = []byte(texts[0])
	case len(texts) > 0:
		out.Data = rawjson.AppendQuote(nil, strings.Join(texts, "\n"))
	}
	return out, nil
}

// minCopy is the minimum length of a string in structured content that is compared with the blobs, in bytes.
const minCopy = 64

// withoutCopies returns structured content in which a note replaces each string that is the base64 of a blob: some servers repeat their
// images there, and the model would read them as text besides the image.
func withoutCopies(structured []byte, blobs []lathe.Blob) []byte {
	copies := make(map[string]string, len(blobs))
	for _, b := range blobs {
		if base64.StdEncoding.EncodedLen(len(b.Data)) >= minCopy {
			copies[base64.StdEncoding.EncodeToString(b.Data)] = "[" + b.MediaType + ", " + strconv.Itoa(len(b.Data)) + " bytes: see the content]"
		}
	}
	if len(copies) == 0 {
		return bytes.Clone(structured)
	}
	return appendWithout(nil, structured, copies)
}

// appendWithout appends a JSON value and replaces each string that is a key of copies. For a data URL, its data is compared.
func appendWithout(dst, v []byte, copies map[string]string) []byte {
	switch v[0] {
	case '{', '[':
		return rawjson.AppendEach(dst, v, func(dst, _, value []byte) []byte { return appendWithout(dst, value, copies) })
	case '"':
		if len(v) < minCopy {
			break
		}
		s := rawjson.Text(v)
		if _, data, ok := strings.Cut(s, ";base64,"); ok && strings.HasPrefix(s, "data:") {
			s = data
		}
		if note, ok := copies[s]; ok {
			return rawjson.AppendQuote(dst, note)
		}
	}
	return append(dst, v...)
}

// isJSON reports whether a text is an object or array in strict JSON.
func isJSON(s string) bool {
	t := strings.TrimSpace(s)
	return t != "" && (t[0] == '{' || t[0] == '[') && rawjson.Check([]byte(s), rawjson.Limits{}) == nil
}

// readContent reads the content blocks. If all of them are text, it returns texts; if not, it returns blocks, a JSON array.
func readContent(result []byte, out *lathe.Output) (blocks []byte, texts []string, err error) {
	list := rawjson.At(result, "content")
	if list != nil && list[0] != '[' {
		return nil, nil, errNoResult
	}
	all := []byte{'['}
	n := 0
	for raw := range rawjson.Elements(list) {
		if n++; n > maxBlocks || raw[0] != '{' {
			return nil, nil, errNoResult
		}
		if n > 1 {
			all = append(all, ',')
		}
		if kind := rawjson.TextAt(raw, "type"); kind != "text" {
			if all, err = appendBlock(all, kind, raw, out); err != nil {
				return nil, nil, err
			}
			continue
		}
		value := rawjson.At(raw, "text")
		if rawjson.Kind(value) != '"' {
			return nil, nil, errNoResult
		}
		s := rawjson.Text(value)
		texts = append(texts, s)
		all = append(appendMember(append(all, `{"type":"text"`...), "text", s), '}')
	}
	if len(texts) == n {
		return nil, texts, nil
	}
	return append(all, ']'), nil, nil
}

// appendBlock appends a block that is not text, and adds its bytes to the blobs.
func appendBlock(dst []byte, kind string, raw []byte, out *lathe.Output) ([]byte, error) {
	dst = appendMember(append(dst, '{'), "type", kind)
	copyText := func(from []byte, names ...string) {
		for _, name := range names {
			if s := rawjson.TextAt(from, name); s != "" {
				dst = appendMember(dst, name, s)
			}
		}
	}
	blob := func(from []byte, member, name string) error {
		data, err := base64.StdEncoding.DecodeString(rawjson.TextAt(from, member))
		if err != nil || len(out.Blobs) >= maxBlobs {
			return errNoResult
		}
		out.Blobs = append(out.Blobs, lathe.Blob{MediaType: mediaTypeOf(rawjson.TextAt(from, "mimeType"), data), Data: data, Name: name})
		dst = append(dst, `,"bytes":`...)
		dst = strconv.AppendInt(dst, int64(len(data)), 10)
		return nil
	}
	var err error
	switch kind {
	case "image", "audio":
		copyText(raw, "mimeType")
		err = blob(raw, "data", "")
	case "resource_link":
		copyText(raw, "uri", "name", "title", "description", "mimeType")
	case "resource":
		res := rawjson.At(raw, "resource")
		if rawjson.Kind(res) != '{' {
			return nil, errNoResult
		}
		copyText(res, "uri", "mimeType", "text")
		if rawjson.At(res, "blob") != nil {
			err = blob(res, "blob", rawjson.TextAt(res, "uri"))
		}
	default: // a kind of a later protocol version: only its name is shown
	}
	return append(dst, '}'), err
}

func appendMember(dst []byte, name, value string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(rawjson.AppendQuote(dst, name), ':')
	return rawjson.AppendQuote(dst, value)
}

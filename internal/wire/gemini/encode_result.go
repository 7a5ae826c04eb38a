package gemini

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// appendResults appends the results in the messages i to end-1, in their order. names are the names of the calls by id. Files of a result
// are within the result if the model supports that, otherwise after all results.
func (e *encoder) appendResults(dst wire.JSON, i, end int, names map[string]string) wire.JSON {
	type file struct {
		blob *lathe.Blob
		of   lathe.Wire
		at   string
	}
	var files []file
	for ; i < end; i++ {
		m := &e.req.Messages[i]
		for j, p := range m.Parts {
			at := wire.Element(wire.Element("messages", i)+".parts", j)
			r, ok := p.(lathe.ToolResult)
			if !ok {
				e.d.add(at)
				continue
			}
			if r.Name == "" {
				r.Name = names[r.CallID]
			}
			for k := range r.Blobs {
				if m.Wire != lathe.WireGemini && !reachable(&r.Blobs[k]) {
					r.Content = strings.TrimPrefix(r.Content+"\n"+wire.BlobNote(&r.Blobs[k]), "\n")
				}
			}
			inside := r.Blobs
			if m.Wire != lathe.WireGemini && generation(e.req.Model) <= 2 {
				inside = nil
				for k := range r.Blobs {
					files = append(files, file{&r.Blobs[k], m.Wire, wire.Element(at+".blobs", k)})
				}
			}
			dst = e.appendResult(dst.Next(), m, &r, inside, at)
		}
	}
	for _, f := range files {
		dst = e.appendBlob(dst, f.of, f.blob, "", f.at)
	}
	return dst
}

// appendResult appends a functionResponse with the files that are within it.
func (e *encoder) appendResult(dst wire.JSON, m *lathe.Message, r *lathe.ToolResult, files []lathe.Blob, at string) wire.JSON {
	own := m.Wire == lathe.WireGemini
	key := "output"
	if r.IsError {
		key = "error"
	}
	response := wire.ObjectOf(key, r.Content)
	if kept := keptResponse(r); own && kept != nil {
		response = kept
	}
	id := wire.Optional(r.CallID)
	if has(e.opts.Without, featureIDs) {
		id = ""
	}
	dst = dst.Lit(`{"functionResponse":{`).Fields("id", id, "name", sentName(r.Name), "response", response)
	if len(files) > 0 {
		dst = dst.Arr("parts")
		for k := range files {
			dst = e.appendBlob(dst, m.Wire, &files[k], "", wire.Element(at+".blobs", k))
		}
		dst = dst.Lit("]")
	}
	if own {
		dst = appendInnerMembers(dst, r.Extra, "functionResponse", resultNames)
	}
	dst = dst.Lit("}")
	return e.appendExtra(dst, m.Wire, r.Extra, at).Lit("}")
}

// keptResponse returns the response object that the client sent if it has more than one text and the result still has the same content;
// otherwise nil.
func keptResponse(r *lathe.ToolResult) []byte {
	for _, m := range r.Extra {
		if m.Name != "functionResponse" {
			continue
		}
		raw := get(m.Value, "response")
		if raw == nil {
			return nil
		}
		var sent lathe.ToolResult
		reader := reader{Reader: wire.NewReader(nil)}
		if reader.Try(func() { reader.readResponse(&sent, "", raw) }) == nil && sent.Content == r.Content && sent.IsError == r.IsError {
			return rawjson.AppendCompact(nil, raw)
		}
	}
	return nil
}

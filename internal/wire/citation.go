package wire

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// Names of members of a text that list its sources: annotations on Responses and chat completions, citations on Messages.
const (
	annotations = "annotations"
	citations   = "citations"
)

// Citations returns the sources of the text that a [lathe.DeltaTextEnd] ends, as elements of the list of sources on the wire to. Sources
// from the same wire are unchanged except for their offsets. From other wires, only web pages are returned, since names of files and
// documents are known on one wire only. before is the number of characters that precede the text in its part of the answer.
func Citations(d *lathe.Delta, to lathe.Wire, before int) (list []json.RawMessage) {
	t, ok := d.Part.(lathe.Text)
	if !ok {
		return nil
	}
	from := cmp.Or(lathe.Wire(d.Name), lathe.WireOpenAIChat)
	text := []rune(t.Text)
	for _, m := range t.Extra {
		isList := m.Name == annotations || m.Name == citations
		if !isList || rawjson.Kind(m.Value) != '[' {
			continue
		}
		for el := range rawjson.Elements(m.Value) {
			if rawjson.Kind(el) != '{' {
				continue
			}
			if from == to {
				list = append(list, shifted(rawjson.AppendCompact(nil, el), before))
				continue
			}
			page, ok := readPage(el, len(text))
			if ok {
				list = append(list, json.RawMessage(page.append(nil, to, text, before)))
			}
		}
	}
	return list
}

// shifted returns a citation with its start and end increased by before characters.
func shifted(el []byte, before int) []byte {
	if before == 0 {
		return el
	}
	return rawjson.AppendEdited(nil, el, func(name string, v []byte) (key, to []byte, keep bool) {
		switch name {
		case "url_citation":
			if rawjson.Kind(v) == '{' {
				return nil, shifted(v, before), true
			}
		case "start_index", "end_index":
			if n, err := strconv.Atoi(string(v)); err == nil {
				return nil, strconv.AppendInt(nil, int64(n+before), 10), true
			}
		}
		return nil, v, true
	}, nil)
}

// A page is a web page that is the source of a text.
type page struct {
	url, title, quote string
	from, to          int // range of characters of the text for which the page is the source
}

// readPage reads a citation of Messages, or an annotation of the other wires, of a text of size characters. ok is false if it has no URL.
func readPage(v []byte, size int) (p page, ok bool) {
	if inner := rawjson.At(v, "url_citation"); inner != nil {
		v = inner
	}
	p.to = size
	for key, v := range rawjson.Members(v) {
		switch string(key) {
		case `"url"`:
			p.url = rawjson.Text(v)
		case `"title"`:
			p.title = rawjson.Text(v)
		case `"cited_text"`:
			p.quote = rawjson.Text(v)
		case `"start_index"`:
			p.from, _ = strconv.Atoi(string(v))
		case `"end_index"`:
			if n, err := strconv.Atoi(string(v)); err == nil {
				p.to = min(p.to, n)
			}
		}
	}
	p.from = max(0, min(p.from, p.to))
	return p, p.url != ""
}

// maxQuote bounds the characters of the text that a citation quotes.
const maxQuote = 150

// append appends the page as an annotation or citation of the wire to.
func (p *page) append(dst JSON, to lathe.Wire, text []rune, before int) JSON {
	if to == lathe.WireMessages {
		quote := p.quote
		if quote == "" {
			quote = string(text[p.from:min(p.to, p.from+maxQuote)])
		}
		return dst.Raw(ObjectOf("type", "web_search_result_location", "cited_text", quote, "url", p.url, "title", p.title, "encrypted_index", ""))
	}
	members := []any{"start_index", before + p.from, "end_index", before + p.to, "url", p.url, "title", p.title}
	if to == lathe.WireOpenAIChat {
		members = []any{"url_citation", ObjectOf(members...)}
	}
	return dst.Lit(`{"type":"url_citation"`).Fields(members...).Lit("}")
}

// Package vendor finds the parts of requests to model APIs that reach beyond the request itself: objects of the account whose key the
// gateway uses, such as files, vector stores and containers, and tools that the vendor executes, such as web search. The members are those
// in the API references of OpenAI, Anthropic and Google in November 2026. All functions are pure and take time linear in their input.
package vendor

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// Kinds of objects.
const (
	file         = "file"
	vectorStore  = "vector_store"
	container    = "container"
	skill        = "skill"
	cache        = "cache"
	prompt       = "prompt"
	conversation = "conversation"
	item         = "item"
	connector    = "connector"
	audio        = "audio"
)

// Kinds returns the kinds of objects, as written in a configuration.
func Kinds() []string {
	return []string{file, vectorStore, container, skill, cache, prompt, conversation, item, connector, audio}
}

// An Object is a value that names an object of the vendor's account.
type Object struct {
	Kind string // one of Kinds
	ID   string // "": the value refers to several objects, or to an object without an id
	Path string // path of the value, such as "messages[0].content[1].file_id"
	// Reference: a request refers to an item instead of containing it. The gateway may have stored the item itself.
	Reference bool
}

// A form selects the values of a member that refer to an object.
type form int

const (
	ids       form = iota // a string, or a list of strings
	idOrWhole             // a string, a list of strings, or an object with an id
	wholeOnly             // an object with an id
	anything              // any JSON object
	fileURI               // a URI, unless it is a public address
	anyURL                // a URL, only if it refers to a file of an account
)

// A member describes a JSON member that refers to objects.
type member struct {
	kind string
	form form
	top  bool // only at the top level of the request
}

// members are the JSON members that refer to objects, by folded name: the protocols write names with and without underscores.
var members = foldKeys(map[string]member{
	"file_id": {kind: file}, "file_ids": {kind: file}, "file_uri": {kind: file, form: fileURI},
	"url": {kind: file, form: anyURL}, "image_url": {kind: file, form: anyURL}, "file_url": {kind: file, form: anyURL}, "file_data": {kind: file, form: anyURL},
	"vector_store_id": {kind: vectorStore}, "vector_store_ids": {kind: vectorStore}, "collection_ids": {kind: vectorStore}, "library_ids": {kind: vectorStore},
	"file_search_store_name": {kind: vectorStore}, "file_search_store_names": {kind: vectorStore},
	"vertex_ai_search": {kind: vectorStore, form: anything}, "vertex_rag_store": {kind: vectorStore, form: anything},
	"container": {kind: container, form: idOrWhole}, "container_id": {kind: container},
	"skill_id": {kind: skill}, "cached_content": {kind: cache}, "connector_id": {kind: connector},
	"prompt": {kind: prompt, form: wholeOnly, top: true}, "conversation": {kind: conversation, form: idOrWhole, top: true},
	"previous_message_id": {kind: conversation}, "previous_interaction_id": {kind: conversation},
	"audio": {kind: audio, form: wholeOnly},
})

// data are members with content that a client or a model defines: schemas, arguments and results of tools. Nothing in them refers to an
// object of the vendor. notes are members with the sources of a text.
var (
	data = foldKeys(map[string]bool{"parameters": true, "input_schema": true, "parameters_json_schema": true, "response_schema": true,
		"response_json_schema": true, "json_schema": true, "schema": true, "metadata": true, "args": true, "arguments": true, "input": true, "response": true, "lathe": true,
		"action": true, "operation": true, "env": true})
	notes = foldKeys(map[string]bool{"annotations": true, "citations": true})
)

func foldKeys[T any](m map[string]T) map[string]T {
	out := make(map[string]T, len(m))
	for name, v := range m {
		out[string(appendFolded(nil, []byte(name)))] = v
	}
	return out
}

// maxName is longer than every folded name in the tables, in bytes.
const maxName = 64

// appendFolded appends a name in upper case without underscores and hyphens.
func appendFolded(dst, name []byte) []byte {
	var buf [2 * maxName]byte
	for _, c := range rawjson.AppendFold(buf[:0], name) {
		if c != '_' && c != '-' {
			dst = append(dst, c)
		}
	}
	return dst
}

// A walker finds references to objects in JSON and calls visit for each.
type walker struct {
	visit  func(Object) bool
	answer bool // the JSON is an answer of the vendor
	items  bool // report items of the answer
	done   bool
	path   []step
	name   [2 * maxName]byte
}

// A step is one part of a path: a member, or an element if key is nil.
type step struct {
	key   []byte
	index int
}

// InRequest calls visit for each value of a request that refers to an object, until visit returns false. body must be valid JSON.
func InRequest(body []byte, visit func(Object) bool) {
	w := walker{visit: visit}
	w.value(body[rawjson.SkipSpace(body, 0):])
}

// InMessages calls visit for each value of the messages that refers to an object, until visit returns false.
func InMessages(messages []lathe.Message, visit func(Object) bool) {
	w := walker{visit: visit}
	for i := range messages {
		w.path = append(w.path[:0], step{key: []byte(`"messages"`)}, step{index: i})
		w.extra(messages[i].Extra)
		for j, p := range messages[i].Parts {
			w.path = append(w.path[:2], step{key: []byte(`"content"`)}, step{index: j})
			w.part(p)
		}
	}
}

// InAnswer calls visit for each object that a vendor's answer, or an event of its stream, refers to, until visit returns false. If items is
// true, the items of the answer are objects too. body must be valid JSON.
func InAnswer(body []byte, items bool, visit func(Object) bool) {
	w := walker{visit: visit, answer: true, items: items}
	w.value(body[rawjson.SkipSpace(body, 0):])
}

// InAnswerMessage calls visit for each object that a message of the vendor's answer refers to, until visit returns false.
func InAnswerMessage(m *lathe.Message, visit func(Object) bool) {
	w := walker{visit: visit, answer: true}
	w.extra(m.Extra)
	for _, p := range m.Parts {
		w.part(p)
	}
}

// part finds the objects in a part of a message.
func (w *walker) part(p lathe.Part) {
	switch p := p.(type) {
	case lathe.Text:
		w.extra(p.Extra)
	case lathe.Blob:
		w.blob(&p)
	case lathe.ToolCall:
		w.extra(p.Extra)
	case lathe.ToolResult:
		w.extra(p.Extra)
		for i := range p.Blobs {
			w.blob(&p.Blobs[i])
		}
	case lathe.Opaque:
		w.value(p.JSON)
	case lathe.Reasoning, lathe.Refusal: // they contain only text
	}
}

func (w *walker) blob(b *lathe.Blob) {
	if namesFile(b.URL, anyURL) {
		w.found(file, b.URL)
	}
	w.value(b.Raw)
}

func (w *walker) extra(members []lathe.Member) {
	for _, m := range members {
		if len(m.Value) > 0 && !w.done {
			w.member(nil, rawjson.AppendQuote(nil, m.Name), m.Value)
		}
	}
}

// value finds the objects in an object or an array.
func (w *walker) value(v []byte) {
	switch {
	case len(v) == 0:
	case v[0] == '{':
		for key, value := range rawjson.Members(v) {
			if w.member(v, key, value); w.done {
				return
			}
		}
	case v[0] == '[':
		i := 0
		w.path = append(w.path, step{})
		for el := range rawjson.Elements(v) {
			w.path[len(w.path)-1].index = i
			if w.item(el); !w.done {
				w.value(el)
			}
			if w.done {
				return
			}
			i++
		}
		w.path = w.path[:len(w.path)-1]
	}
}

// fold returns the folded name of a member, or nil if it is longer than all names in the tables. The result is valid until the next call.
func (w *walker) fold(key []byte) []byte {
	name := key[1 : len(key)-1]
	if bytes.IndexByte(name, '\\') >= 0 && len(name) <= 6*maxName {
		name = []byte(rawjson.Text(key))
	}
	if len(name) > maxName {
		return nil
	}
	return appendFolded(w.name[:0], name)
}

// member finds the objects in a member of an object.
func (w *walker) member(object, key, v []byte) {
	name := w.fold(key)
	row, answers := members[string(name)], w.answer && (string(name) == "RESPONSE" || string(name) == "ITEM")
	switch {
	case v[0] == '{' && data[string(name)] && !answers, !w.answer && notes[string(name)], w.answer && string(name) == "TOOLS":
		return
	case row.kind == skill && isOfAll(object):
		return
	}
	w.path = append(w.path, step{key: key})
	if row.kind != "" && (!row.top || len(w.path) == 1) {
		w.named(&row, v)
	}
	if answers && w.items {
		w.itemOf(v)
	}
	if !w.done {
		w.value(v)
	}
	w.path = w.path[:len(w.path)-1]
}

// isOfAll reports whether a skill belongs to the vendor, which offers it to every account.
func isOfAll(skill []byte) bool {
	return rawjson.TextAt(skill, "type") == "anthropic"
}

// named reports the objects that a value refers to, according to the row of its member.
func (w *walker) named(row *member, v []byte) {
	switch {
	case v[0] == '"' && (row.form == ids || row.form == idOrWhole):
		w.found(row.kind, rawjson.Text(v))
	case v[0] == '"' && (row.form == fileURI || row.form == anyURL):
		if uri := head(v); namesFile(uri, row.form) {
			w.found(row.kind, uri)
		}
	case v[0] == '[' && row.form == ids:
		for el := range rawjson.Elements(v) {
			if el[0] == '"' && !w.done {
				w.found(row.kind, rawjson.Text(el))
			}
		}
	case v[0] == '{' && row.form == anything:
		w.found(row.kind, "")
	case v[0] == '{' && (row.form == idOrWhole || row.form == wholeOnly):
		if id := rawjson.TextAt(v, "id"); id != "" {
			w.found(row.kind, id)
		}
	}
}

// maxURI is the number of bytes of a URI that are decoded: data URLs are long.
const maxURI = 4096

// head returns the decoded beginning of a JSON string.
func head(quoted []byte) string {
	if len(quoted) <= maxURI {
		return rawjson.Text(quoted)
	}
	quoted = quoted[:maxURI]
	if at := bytes.LastIndexByte(quoted, '\\'); at > maxURI-12 { // an escape at the end may be incomplete
		quoted = quoted[:at]
	}
	return string(rawjson.AppendUnquoteLossy(nil, append(bytes.Clone(quoted), '"')))
}

// namesFile reports whether a URI refers to a file of an account.
func namesFile(uri string, f form) bool {
	uri = strings.ToLower(strings.TrimSpace(uri))
	scheme, _, ok := strings.Cut(uri, ":")
	switch {
	case !ok || strings.Contains(scheme, "/"):
		return f == fileURI || strings.HasPrefix(uri, "files/")
	case scheme == "http" || scheme == "https":
		return strings.Contains(uri, "generativelanguage.googleapis.com")
	case scheme == "openai-file" || scheme == "gs":
		return true
	}
	return f == fileURI && scheme != "data"
}

// item reports an element of a list: in an answer each item of output, in a request each element of input that refers to an item of an
// earlier answer.
func (w *walker) item(el []byte) {
	if len(w.path) < 2 || w.path[len(w.path)-2].key == nil {
		return
	}
	list := string(w.fold(w.path[len(w.path)-2].key))
	if w.answer && w.items && list == "OUTPUT" || !w.answer && list == "INPUT" && len(w.path) == 2 {
		w.itemOf(el)
	}
}

func (w *walker) itemOf(el []byte) {
	if o := (Object{Kind: item, ID: rawjson.TextAt(el, "id")}); o.ID != "" && (w.answer || o.refers(el, rawjson.TextAt(el, "type"))) {
		w.report(o)
	}
}

// refers reports whether an item of the input has no content of its own and thus refers to an earlier item. It sets o.Reference, except for
// an image_generation_call.
func (o *Object) refers(el []byte, typ string) bool {
	switch typ {
	case "item_reference":
		o.Reference = true
	case "reasoning":
		o.Reference = !hasAny(el, "encrypted_content", "summary", "content")
	case "":
		o.Reference = !hasAny(el, "role", "content")
	case "image_generation_call":
		return !hasAny(el, "result")
	}
	return o.Reference
}

// hasAny reports whether one of the members has a value that is not empty.
func hasAny(el []byte, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		v := rawjson.At(el, name)
		if rawjson.Kind(v) == '[' {
			return v[rawjson.SkipSpace(v, 1)] != ']'
		}
		return len(v) > 0 && string(v) != "null" && string(v) != `""`
	})
}

func (w *walker) found(kind, id string) { w.report(Object{Kind: kind, ID: id}) }

func (w *walker) report(o Object) {
	var at strings.Builder
	for _, s := range w.path {
		switch {
		case s.key == nil:
			at.WriteString("[" + strconv.Itoa(s.index) + "]")
		case at.Len() > 0:
			at.WriteString("." + rawjson.Text(s.key))
		default:
			at.WriteString(rawjson.Text(s.key))
		}
	}
	o.Path = at.String()
	w.done = !w.visit(o)
}

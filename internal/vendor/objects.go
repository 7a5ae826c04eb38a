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
	idOrWhole             // a string, or an object with an id
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

// members are the JSON members that refer to objects, by folded name.
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

// data are members with content that a client or a model defines, if their value is an object: schemas, arguments and results of tools.
// Nothing in them refers to an object of the vendor.
var data = foldedSet("parameters", "input_schema", "parameters_json_schema", "response_schema",
	"response_json_schema", "json_schema", "schema", "metadata", "args", "arguments", "input", "response", "lathe",
	"action", "operation", "env")

func foldKeys(m map[string]member) map[string]member {
	out := map[string]member{}
	for name, v := range m {
		out[fold(name)] = v
	}
	return out
}

func foldedSet(names ...string) map[string]bool {
	out := map[string]bool{}
	for _, name := range names {
		out[fold(name)] = true
	}
	return out
}

// fold returns a name in upper case without underscores and hyphens, because the protocols write names with and without them.
func fold(name string) string { return string(appendFolded(nil, []byte(name))) }

func appendFolded(dst, name []byte) []byte {
	return slices.DeleteFunc(rawjson.AppendFold(dst, name), func(c byte) bool { return c == '_' || c == '-' })
}

// maxName is longer than every name in the tables, in bytes.
const maxName = 64

// appendName appends the folded name of a member. It appends nothing for a name of more than maxName bytes.
func appendName(dst, key []byte) []byte {
	name := key[1 : len(key)-1]
	if len(name) <= 6*maxName && bytes.IndexByte(name, '\\') >= 0 { // an escape has at most 6 bytes
		name = rawjson.AppendUnquoteLossy(nil, key)
	}
	if len(name) > maxName {
		return dst
	}
	return appendFolded(dst, name)
}

// InRequest calls visit for each value of a request that refers to an object, until visit returns false. body must be valid JSON.
func InRequest(body []byte, visit func(Object) bool) {
	f := finder{visit: visit}
	f.value(body, newPath(), plainArray)
}

// InMessages calls visit for each value of the messages that refers to an object, until visit returns false.
func InMessages(messages []lathe.Message, visit func(Object) bool) {
	f := finder{visit: visit}
	list, content := append(newPath(), step{key: []byte(`"messages"`)}), step{key: []byte(`"content"`)}
	for i := range messages {
		at := append(list, step{index: i})
		f.extra(messages[i].Extra, at)
		for j, p := range messages[i].Parts {
			f.part(p, append(at, content, step{index: j}))
		}
	}
}

// InAnswer calls visit for each object that a vendor's answer, or an event of its stream, refers to, until visit returns false. If items is
// true, the items of the answer are objects too. body must be valid JSON.
func InAnswer(body []byte, items bool, visit func(Object) bool) {
	f := finder{visit: visit, answer: true, items: items}
	f.value(body, newPath(), plainArray)
}

// InAnswerMessage calls visit for each object that a message of the vendor's answer refers to, until visit returns false.
func InAnswerMessage(m *lathe.Message, visit func(Object) bool) {
	f := finder{visit: visit, answer: true}
	at := newPath()
	f.extra(m.Extra, at)
	for _, p := range m.Parts {
		f.part(p, at)
	}
}

// A finder calls visit for the references to objects in JSON, until visit returns false.
type finder struct {
	visit  func(Object) bool
	done   bool
	answer bool // the JSON is an answer of the vendor
	items  bool // report items of the answer
}

// A path is the position of a value in the JSON.
type path []step

// A step is one part of a path: a member, or an element if key is nil.
type step struct {
	key   []byte
	index int
}

// newPath returns an empty path with room for the steps to a value in most bodies, so that a step costs no allocation.
func newPath() path { return make(path, 0, 16) }

// String returns a path such as messages[0].content.
func (p path) String() string {
	var b strings.Builder
	for _, s := range p {
		switch {
		case s.key == nil:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case b.Len() > 0:
			b.WriteString("." + rawjson.Text(s.key))
		default:
			b.WriteString(rawjson.Text(s.key))
		}
	}
	return b.String()
}

func (f *finder) report(o Object, at path) {
	if !f.done {
		o.Path = at.String()
		f.done = !f.visit(o)
	}
}

// part finds the objects in a part of a message.
func (f *finder) part(p lathe.Part, at path) {
	switch p := p.(type) {
	case lathe.Text:
		f.extra(p.Extra, at)
	case lathe.Blob:
		f.blob(&p, at)
	case lathe.ToolCall:
		f.extra(p.Extra, at)
	case lathe.ToolResult:
		f.extra(p.Extra, at)
		for i := range p.Blobs {
			f.blob(&p.Blobs[i], at)
		}
	case lathe.Opaque:
		f.value(p.JSON, at, plainArray)
	case lathe.Reasoning, lathe.Refusal: // they contain only text
	}
}

func (f *finder) blob(b *lathe.Blob, at path) {
	if namesFile(b.URL, anyURL) {
		f.report(Object{Kind: file, ID: b.URL}, at)
	}
	f.value(b.Raw, at, plainArray)
}

func (f *finder) extra(members []lathe.Member, at path) {
	for _, m := range members {
		if len(m.Value) > 0 {
			f.member(&object{}, rawjson.AppendQuote(nil, m.Name), m.Value, at)
		}
	}
}

// An arrayKind says what the elements of an array are.
type arrayKind int

const (
	plainArray arrayKind = iota // values of any kind
	itemArray                   // items of a conversation
)

// value finds the objects in an object, or in an array of the given kind.
func (f *finder) value(v []byte, at path, kind arrayKind) {
	o := object{json: v}
	for key, value := range rawjson.Members(v) {
		if f.done {
			return
		}
		f.member(&o, key, value, at)
	}
	i := 0
	for el := range rawjson.Elements(v) {
		if f.done {
			return
		}
		elementAt := append(at, step{index: i})
		if kind == itemArray {
			f.item(el, elementAt)
		}
		f.value(el, elementAt, plainArray)
		i++
	}
}

// An object is the JSON object whose members are searched.
type object struct {
	json     []byte
	typeRead bool
	typ      string
}

// public reports whether the object is a skill that the vendor offers to every account. It reads the type of the object once.
func (o *object) public() bool {
	if !o.typeRead {
		o.typeRead, o.typ = true, rawjson.TextAt(o.json, "type")
	}
	return o.typ == "anthropic"
}

// member finds the objects in a member of o. at is the position of o.
func (f *finder) member(o *object, key, v []byte, at path) {
	at = append(at, step{key: key})
	var buf [maxName]byte
	name := string(appendName(buf[:0], key))
	isEvent := f.answer && (name == "RESPONSE" || name == "ITEM") // the answer or an item in an event of a stream
	if f.ignores(name) || v[0] == '{' && data[name] && !isEvent {
		return
	}
	row := members[name]
	if row.kind != "" && (!row.top || len(at) == 1) {
		f.reference(o, row, v, at)
	}
	if isEvent && f.items {
		f.item(v, at)
	}
	kind := plainArray
	if f.items && name == "OUTPUT" || !f.answer && name == "INPUT" && len(at) == 1 {
		kind = itemArray
	}
	f.value(v, at, kind)
}

// ignores reports whether a member is not searched, whatever its value: the tools that an answer repeats from the request, and the sources of
// a text in a request.
func (f *finder) ignores(name string) bool {
	if f.answer {
		return name == "TOOLS"
	}
	return name == "ANNOTATIONS" || name == "CITATIONS"
}

// reference reports the objects that the value of a member of o refers to, according to the row of the member.
func (f *finder) reference(o *object, row member, v []byte, at path) {
	found := func(id string) {
		if row.kind != skill || !o.public() {
			f.report(Object{Kind: row.kind, ID: id}, at)
		}
	}
	switch {
	case v[0] == '"' && (row.form == ids || row.form == idOrWhole):
		found(rawjson.Text(v))
	case v[0] == '"' && (row.form == fileURI || row.form == anyURL):
		if uri := head(v); namesFile(uri, row.form) {
			found(uri)
		}
	case v[0] == '[' && row.form == ids:
		for el := range rawjson.Elements(v) {
			if el[0] == '"' {
				found(rawjson.Text(el))
			}
		}
	case v[0] == '{' && row.form == anything:
		found("")
	case v[0] == '{' && (row.form == idOrWhole || row.form == wholeOnly):
		if id := rawjson.TextAt(v, "id"); id != "" {
			found(id)
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

// item reports an item of an answer, or an item of a request that has no content of its own and thus refers to an earlier item.
func (f *finder) item(v []byte, at path) {
	o := Object{Kind: item, ID: rawjson.TextAt(v, "id")}
	isReported := f.answer
	if !isReported {
		switch rawjson.TextAt(v, "type") {
		case "item_reference":
			o.Reference = true
		case "reasoning":
			o.Reference = !hasAny(v, "encrypted_content", "summary", "content")
		case "":
			o.Reference = !hasAny(v, "role", "content")
		case "image_generation_call":
			isReported = !hasAny(v, "result") // the request contains the item, but not its image
		}
	}
	if o.ID != "" && (isReported || o.Reference) {
		f.report(o, at)
	}
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

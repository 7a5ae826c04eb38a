package config

import (
	_ "embed"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// A setting is a field of a configuration struct with the tag key. The comment before the field
// is its text in docs/config.md and in the help of flags. The tags are:
//
//	key      name of the setting; a dot begins a section; ",inline": the settings of the struct stand in
//	         the section of the field; "-": no setting. lathe.Settings and lathe.Limits have such fields, too
//	default  default as one would write it; none: the zero value of the field. On a struct:
//	         "KEY=VALUE", the default of one of its settings there
//	is       what the text must be, if the type of the field does not say it: see textKinds,
//	         nameChecks and refChecks; "size", "dollars" and "rate" of numbers; "negated" of a bool that
//	         holds the opposite of the setting
//	of       words of a closed vocabulary; after "=", what people write instead of the word
//	range    lowest and highest number, size or duration: "1..20", "1s.."
//	off      word that turns a bound off
//	zero     what a field holds whose setting is 0, if 0 in the field means the default: "-1"
//	narrow   of a limit: the places where it can be narrowed: "request", "keys", "agents". On a struct
//	         of limits: which of these places it is; it has only their limits, unset by default
//	note     on a struct: text that the reference adds to the comment of each of its settings
//	guest    of a limit: the highest value that a WebAssembly guest may set
//	names    of a map: what the names of its entries must be, as in nameChecks
//	per      of a map: what a name is, or "NAME to VALUE", for the reference and errors
//	unset    of a list: "all", if nil grants everything and ["*"] is read as nil; "omit", if
//	         an unset value cannot be written, so that `config show` leaves it out
//	also     other words that people look for, separated by blanks; errors name the key
//	was      former name, which errors also name where a request or a variable has it
type setting struct {
	path  string // path from the struct to which the settings belong: "retention.mode"
	field string // name under which comments has its comment: "Retention.Mode"
	note  string // text that is appended to the comment
	index []int
	def   string
	was   string // former path; "": none
	also  []string
	kind  *kind
}

// A row is a setting together with one value of it in a struct.
type row struct {
	*setting
	v reflect.Value
}

// name returns the last part of the path.
func (s *setting) name() string { return s.path[strings.LastIndexByte(s.path, '.')+1:] }

// doc returns the documentation of the setting on one line.
func (s *setting) doc() string { return s.text(comments()) }

// text returns the comment of the field followed by the note.
func (s *setting) text(comments map[string]string) string {
	return strings.TrimSpace(comments[s.field] + " " + s.note)
}

//go:embed comments.txt
var commentText string

// comments maps "Struct.Field" to the comment of the field. comments.txt is generated from the source.
var comments = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(commentText) {
		field, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		out[field] = text
	}
	return out
})

var settingsByType sync.Map // reflect.Type → []*setting

// settingsOf returns the settings of a struct and of its sections in the order of the fields. It panics if a tag is not valid, which every
// test of this package detects.
func settingsOf(t reflect.Type) []*setting {
	if known, ok := settingsByType.Load(t); ok {
		return known.([]*setting)
	}
	list := appendSettings(nil, t, "", "", nil)
	settingsByType.Store(t, list)
	return list
}

// appendSettings appends the settings of a struct whose keys begin with prefix. within is the tag of the field that contains the struct;
// its default has the form "KEY=VALUE" and applies to one of the settings.
func appendSettings(dst []*setting, t reflect.Type, prefix string, within reflect.StructTag, index []int) []*setting {
	for i := range t.NumField() {
		f := t.Field(i)
		name, ok := f.Tag.Lookup("key")
		if !ok || name == "-" {
			continue
		}
		at := append(slices.Clone(index), i)
		if isSection := f.Type.Kind() == reflect.Struct && scalarOf(f.Type, f.Tag, "") == nil; isSection {
			section := prefix + name + "."
			if name == ",inline" {
				section = prefix
			}
			dst = appendSettings(dst, f.Type, section, f.Tag, at)
			continue
		}
		tag := tagWithin(within, &f)
		if tag == "" {
			continue
		}
		def := tag.Get("default")
		s := &setting{path: prefix + name, field: t.Name() + "." + f.Name, note: within.Get("note"), index: at, def: def, kind: kindOf(f.Type, tag, def)}
		s.also = strings.Fields(f.Tag.Get("also") + " " + f.Tag.Get("was"))
		if was := f.Tag.Get("was"); was != "" {
			s.was = prefix + was
		}
		dst = append(dst, s)
	}
	return dst
}

// tagWithin returns the tag of the setting f in a struct whose own field has the tag within. What is put before the tag of f takes precedence over
// it. A limit may be unset in a struct that narrows limits; the tag is "" if that struct cannot narrow f.
func tagWithin(within reflect.StructTag, f *reflect.StructField) reflect.StructTag {
	place := within.Get("narrow")
	key, value, _ := strings.Cut(within.Get("default"), "=")
	switch {
	case place != "" && !slices.Contains(strings.Fields(f.Tag.Get("narrow")), place):
		return ""
	case place != "" && f.Type.Kind() == reflect.Int:
		return `default:"0" range:"0.." ` + f.Tag
	case place != "":
		return `default:"none" off:"none" ` + f.Tag
	case key == f.Tag.Get("key"):
		return reflect.StructTag(`default:"`+value+`" `) + f.Tag
	}
	return f.Tag
}

// rowsOf returns the rows of the struct that v points to.
func rowsOf(v reflect.Value) []row {
	var rows []row
	for _, s := range settingsOf(v.Type().Elem()) {
		rows = append(rows, row{s, v.Elem().FieldByIndex(s.index)})
	}
	return rows
}

func (c *Config) rows() []row { return rowsOf(reflect.ValueOf(c)) }

// find returns the row with a path, or nil.
func find(rows []row, path string) *row {
	for i := range rows {
		if rows[i].path == path {
			return &rows[i]
		}
	}
	return nil
}

// applyDefaults sets each row that has a default.
func applyDefaults(rows []row) {
	for _, r := range rows {
		if r.def == "" {
			continue
		}
		if err := r.kind.set(r.v, r.def); err != nil {
			panic("config: default of " + r.path + ": " + err.Error())
		}
	}
}

// entry returns the entry of a map of structs, which it creates if necessary.
func entry(m reflect.Value, name string) reflect.Value {
	if m.IsNil() {
		m.Set(reflect.MakeMap(m.Type()))
	}
	e := m.MapIndex(reflect.ValueOf(name))
	if !e.IsValid() {
		e = reflect.New(m.Type().Elem().Elem())
		applyDefaults(rowsOf(e))
		if model, ok := e.Interface().(*Model); ok {
			model.Name = name
		}
		m.SetMapIndex(reflect.ValueOf(name), e)
	}
	return e
}

// namesIn returns the sorted names of the entries of a map.
func namesIn(m reflect.Value) []string {
	var out []string
	for _, k := range m.MapKeys() {
		out = append(out, k.String())
	}
	slices.Sort(out)
	return out
}

// walk calls fn with each setting and its full path, including those of entries.
func walk(base string, rows []row, fn func(path string, r *row)) {
	for i := range rows {
		r := &rows[i]
		if r.kind.shape != group {
			fn(base+r.path, r)
			continue
		}
		for _, name := range namesIn(r.v) {
			walk(base+r.path+"."+name+".", rowsOf(r.v.MapIndex(reflect.ValueOf(name))), fn)
		}
	}
}

// flat returns the settings with those of entries, under NAME, after each map of structs.
func flat(settings []*setting) []*setting {
	var out []*setting
	for _, s := range settings {
		out = append(out, s)
		if s.kind.shape != group {
			continue
		}
		for _, inner := range flat(settingsOf(s.kind.entries)) {
			under := *inner
			under.path = s.path + ".NAME." + inner.path
			out = append(out, &under)
		}
	}
	return out
}

// About returns the documentation of the setting that a key of [Config.Shown] belongs to, and the default as one would write it. Both are
// "" for a key without a setting; the default is also "" for an entry of a map.
func About(key string) (doc, def string) {
	var longest *setting // of those whose path is that of the key, or begins it
	for _, s := range allSettings() {
		if (longest == nil || len(s.path) > len(longest.path)) && isOf(s.path, key) {
			longest = s
		}
	}
	if longest == nil {
		return "", ""
	}
	if strings.HasSuffix("."+key, "."+longest.name()) {
		def = longest.def
	}
	return longest.doc(), def
}

// allSettings returns the settings of the whole configuration, also those of entries.
var allSettings = sync.OnceValue(func() []*setting { return flat(settingsOf(reflect.TypeFor[Config]())) })

// isOf reports whether a key is that of a setting, or lies below it. In path, NAME stands for the name of an entry, which may have dots.
func isOf(path, key string) bool {
	before, after, isEntry := strings.Cut(path, ".NAME.")
	rest, found := strings.CutPrefix(key, before)
	if !found || rest != "" && rest[0] != '.' {
		return false
	}
	if !isEntry {
		return true
	}
	for i := 1; i < len(rest); i++ {
		if rest[i] == '.' && isOf(after, rest[i+1:]) {
			return true
		}
	}
	return false
}

// A Setting describes one key of the section tool_calling, for programs that offer it as a flag.
type Setting struct {
	Key     string // from the top: "tool_calling.max_iterations"
	Flag    string // "max-iterations"
	Default string // as one would write it
	Doc     string
	Words   []string // the permitted values; nil: any value of its type
}

// RunSettings returns the settings and limits of runs, in the order of docs/config.md.
func RunSettings() []Setting {
	var out []Setting
	for _, s := range settingsOf(reflect.TypeFor[ToolCalling]()) {
		if strings.HasPrefix(s.path, "retention.") || s.path == "enabled" {
			continue // not a setting of one run
		}
		out = append(out, Setting{Key: "tool_calling." + s.path, Flag: strings.ReplaceAll(s.path, "_", "-"), Default: s.def, Doc: s.doc(), Words: slices.Clone(s.kind.words)})
	}
	return out
}

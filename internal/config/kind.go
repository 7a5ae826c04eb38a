package config

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/price"
	"github.com/lathe-run/lathe/secret"
)

const (
	maxCount = 1_000_000
	maxSize  = 1 << 30
)

// A shape is the form of the value of a key in the file.
type shape int

const (
	scalar shape = iota // 30s
	list                // [a, b]
	object              // a mapping with any content, stored as JSON
	table               // a mapping from names to values of one kind
	group               // a mapping from names to structs with settings of their own
)

// A kind parses and formats the values of a setting. kindOf derives it from the type of the field and from its tag; it does not change
// later. Which fields are set depends on the shape.
type kind struct {
	shape     shape
	what      string // description for the reference
	omitUnset bool   // an unset value cannot be written, and is left out

	// Of scalars and objects:
	parse func(text string) (any, error) // errors do not quote possible secrets
	text  func(reflect.Value) string     // text that parse accepts

	// Of scalars:
	words    []string         // vocabulary; nil: none
	isString bool             // YAML gets it as a string, in quotes if necessary
	ref      func(*Ref) error // checks the resolved value; nil: the scalar has no references
	path     bool             // it is a path: references have their own error

	// Of lists and mappings:
	check func(string) error // checks an item of a list other than of texts, or a name of a mapping

	// Of lists:
	texts       bool // any texts in order, including equal ones
	everything  bool // nil grants everything, and is written ["*"]
	boolAllowed bool // true is read as ["*"], and false as []

	// Of tables and groups:
	names   string       // meaning of a name, for the reference and errors
	values  *kind        // of a table: kind of its values
	entries reflect.Type // of a group: struct type of its entries
}

// kindOf returns the kind of a field with the tag of a setting (see setting for the tags). def is the default of the field, which may differ
// from that of the tag; "": none.
func kindOf(t reflect.Type, tag reflect.StructTag, def string) *kind {
	var k *kind
	switch {
	case t.Kind() == reflect.Map:
		k = mapKind(t, tag)
	case t == reflect.TypeFor[json.RawMessage]():
		k = &kind{shape: object, what: "mapping of anything", parse: parseObject, text: func(v reflect.Value) string { return string(v.Bytes()) }}
	case t.Kind() == reflect.Slice:
		k = &kind{shape: list, what: "list of names", everything: tag.Get("unset") == "all", texts: tag.Get("is") == "text"}
		if k.texts {
			k.what = "list of texts"
		} else {
			k.check = lookUp(nameChecks, tag.Get("is"))
		}
	default:
		k = scalarOf(t, tag, def)
		if k == nil {
			panic("config: no kind of setting has the type " + t.String())
		}
	}
	k.omitUnset = tag.Get("unset") == "omit"
	k.boolAllowed = tag.Get("unset") == "none"
	if k.boolAllowed {
		k.what = "`true`, `false` or list of names"
	}
	return k
}

// mapKind returns the kind of a mapping: a group if its entries are structs, else a table.
func mapKind(t reflect.Type, tag reflect.StructTag) *kind {
	per := tag.Get("per") // "NAME" or "NAME to VALUE"
	names, _, hasValue := strings.Cut(per, " to ")
	k := &kind{names: names, check: lookUp(nameChecks, tag.Get("names"))}
	if t.Elem().Kind() == reflect.Pointer {
		k.shape, k.what, k.entries = group, "mapping: "+names+" to entry", t.Elem().Elem()
		return k
	}
	k.shape, k.what, k.values = table, "mapping: "+per, kindOf(t.Elem(), tag, "")
	if !hasValue {
		k.what += " to " + k.values.what
	}
	return k
}

// scalarOf returns the kind of a single value. It returns nil if none exists for the type. The tag off is a word that turns a bound off.
func scalarOf(t reflect.Type, tag reflect.StructTag, def string) *kind {
	is, off := tag.Get("is"), tag.Get("off")
	switch t {
	case reflect.TypeFor[Ref]():
		return &kind{what: "text or reference", isString: true, ref: lookUp(refChecks, is), text: func(v reflect.Value) string { return v.Interface().(Ref).String() },
			parse: func(s string) (any, error) { return Ref{value: secret.New(s)}, nil }}
	case reflect.TypeFor[time.Duration]():
		return durationKind(tag, off)
	case reflect.TypeFor[price.Money]():
		return moneyKind(tag, off)
	case reflect.TypeFor[*bool]():
		return newVocabulary("unset=auto,none true=yes,on false=no,off").kind(parseUnsetOrBool, textOfUnsetOrBool)
	case reflect.TypeFor[lathe.Decision]():
		return valueWords(newVocabulary("allow=allowed,yes,true ask=approve,confirm deny=denied,no,false,block"), map[string]lathe.Decision{"allow": lathe.Allow, "ask": lathe.Ask, "deny": lathe.Deny})
	case reflect.TypeFor[lathe.Effect]():
		v := newVocabulary("read_only=read,readonly idempotent writes=write")
		v.empty = true
		return valueWords(v, map[string]lathe.Effect{"read_only": lathe.ReadOnly, "idempotent": lathe.Idempotent, "writes": lathe.Writes})
	case reflect.TypeFor[lathe.Wire]():
		v := newVocabulary("openai=chat,openai_chat,chat_completions,completions responses=openai_responses anthropic=messages,claude gemini=google,generatecontent")
		v.empty = true
		return valueWords(v, map[string]lathe.Wire{"openai": lathe.WireOpenAIChat, "responses": lathe.WireResponses, "anthropic": lathe.WireMessages, "gemini": lathe.WireGemini})
	case reflect.TypeFor[lathe.ToolChoice]():
		return choiceKind()
	}
	switch t.Kind() {
	case reflect.Bool:
		negated := is == "negated"
		return newVocabulary("true=yes,on,1 false=no,off,0").kind(
			func(s string) any { return (s == "true") != negated }, func(v reflect.Value) string { return strconv.FormatBool(v.Bool() != negated) })
	case reflect.String:
		if of := tag.Get("of"); of != "" {
			v := newVocabulary(of)
			v.empty = def == ""
			return v.kind(func(s string) any { return s }, reflect.Value.String).asText()
		}
		text := lookUp(textKinds, is)
		return &kind{what: text.what, isString: true, path: is == "file", text: reflect.Value.String, parse: func(s string) (any, error) {
			if is == "sha256" || is == keySHA256 {
				s = strings.ToLower(s)
			}
			return s, text.check(s)
		}}
	case reflect.Int, reflect.Int64:
		if is == "size" {
			return sizeKind(tag, off)
		}
		return numberKind(tag, off)
	case reflect.Float64:
		return new(*lookUp(floatKinds, is)) // a copy for each setting, because kindOf modifies it
	}
	return nil
}

// lookUp returns the element that a tag names. It panics if none exists.
func lookUp[T any](m map[string]T, name string) T {
	v, ok := m[name]
	if !ok {
		panic("config: no kind of setting is called " + strconv.Quote(name))
	}
	return v
}

// set sets v from the text of a scalar in the file, a variable or a flag: a list is written with commas, and tables and groups cannot be
// set in this way.
func (k *kind) set(v reflect.Value, s string) error {
	switch k.shape {
	case table:
		return errors.New("wants a mapping, " + k.names + " to value")
	case group:
		return errors.New("wants a mapping of entries, each under its " + k.names)
	case list:
		return k.splitList(v, s)
	}
	parsed, err := k.parse(s)
	if err == nil {
		v.Set(reflect.ValueOf(parsed).Convert(v.Type()))
	}
	return err
}

// splitList sets a list from its items with commas between them. A list of texts can only be emptied, because a comma may belong to a text.
func (k *kind) splitList(v reflect.Value, s string) error {
	if k.texts && s != "" {
		return errors.New("wants a list: one entry for each argument")
	}
	if k.texts {
		v.SetZero()
		return nil
	}
	items := []string{} // an empty list differs from an unset one
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return k.setList(v, items)
}

// everything is the item of a list that grants everything.
const everything = "*"

// setList sets a list. The result is nil only if nil grants everything and items are ["*"].
func (k *kind) setList(v reflect.Value, items []string) error {
	if k.everything && slices.Equal(items, []string{everything}) {
		v.SetZero()
		return nil
	}
	if k.boolAllowed && len(items) == 1 {
		switch items[0] {
		case "true":
			items = []string{everything}
		case "false":
			items = []string{}
		}
	}
	seen := map[string]bool{}
	for _, item := range items {
		check := k.check
		if k.texts {
			check = isArgument
		}
		if err := check(item); err != nil {
			return err
		}
		if seen[item] && !k.texts {
			return errors.New(quote(item) + " stands twice")
		}
		seen[item] = true
	}
	v.Set(reflect.ValueOf(slices.Clone(items)))
	return nil
}

// isArgument accepts an item of a list of texts, which become arguments of a program.
func isArgument(s string) error {
	switch {
	case strings.ContainsRune(s, 0):
		return errors.New("a text has a NUL in it")
	case strings.Contains(s, "${"):
		return errors.New("references ${…} are not read in arguments, which others can see: pass a secret in env")
	}
	return nil
}

// items returns a list in the form in which a user writes it.
func (k *kind) items(v reflect.Value) []string {
	if k.everything && v.IsNil() {
		return []string{everything}
	}
	return v.Interface().([]string)
}

// asText makes the encoder quote words that YAML would parse as another type.
func (k *kind) asText() *kind {
	k.isString = true
	return k
}

func parseUnsetOrBool(s string) any {
	if s == "unset" {
		return (*bool)(nil)
	}
	return new(s == "true")
}

func textOfUnsetOrBool(v reflect.Value) string {
	if v.IsNil() {
		return "unset"
	}
	return strconv.FormatBool(v.Elem().Bool())
}

// valueWords returns the kind of values that have a word each. The empty word, if v has it, is the zero value.
func valueWords[T comparable](v *vocabulary, values map[string]T) *kind {
	return v.kind(func(word string) any { return values[word] }, func(v reflect.Value) string {
		for word, value := range values {
			if value == v.Interface().(T) {
				return word
			}
		}
		return ""
	}).asText()
}

// choiceKind returns the kind of a tool choice. "auto" is stored as the zero value, because servers behave in the same way without a tool
// choice.
func choiceKind() *kind {
	v := newVocabulary("auto none=off required=any,must function:NAME")
	k := v.kind(func(s string) any {
		if s == lathe.ChoiceAuto {
			return lathe.ToolChoice{}
		}
		return lathe.ToolChoice{Mode: s}
	}, func(v reflect.Value) string {
		switch c := v.Interface().(lathe.ToolChoice); c.Mode {
		case "":
			return lathe.ChoiceAuto
		case lathe.ChoiceFunction:
			return "function:" + c.Name
		default:
			return c.Mode
		}
	}).asText()
	word := k.parse
	k.parse = func(s string) (any, error) {
		name, ok := strings.CutPrefix(s, "function:")
		if !ok {
			return word(s)
		}
		return lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: name}, isToolName(name)
	}
	return k
}

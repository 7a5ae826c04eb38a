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

// A shape is what the file holds under a key.
type shape int

const (
	scalar shape = iota
	list
	object // a mapping of anything, kept as JSON
	table  // a mapping from names to values of one kind
	group  // a mapping from names to structs with settings of their own
)

// A kind reads and writes the values of one setting.
type kind struct {
	shape shape
	what  string                         // for the reference
	parse func(text string) (any, error) // of scalars and objects; errors do not quote what could be a secret
	text  func(reflect.Value) string     // of scalars and objects: what parse would read back
	words []string                       // the vocabulary of a scalar that has one
	str   bool                           // written as a YAML string
	ref   func(*Ref) error               // of scalars that may refer to other values: looks at the resolved one
	path  bool                           // of a scalar that is a file: it has its own error for references

	check      func(string) error // items of a list, names of a map
	texts      bool               // of a list: any texts in their order, which may be equal
	everything bool               // of a list: nil grants everything
	omit       bool               // an unset value cannot be written
	truth      bool               // of a list: true stands for everything, false for nothing

	names   string       // of a map: what a name is
	values  *kind        // of a table
	entries reflect.Type // of a group
}

// kindOf returns the kind of a field. def is its default, which may differ from that of the tag.
func kindOf(t reflect.Type, tag reflect.StructTag, def string) *kind {
	var k *kind
	switch {
	case t.Kind() == reflect.Map:
		per, _, whole := strings.Cut(tag.Get("per"), " to ")
		k = &kind{shape: group, names: per, check: lookUp(nameChecks, tag.Get("names"))}
		if t.Elem().Kind() == reflect.Pointer {
			k.entries, k.what = t.Elem().Elem(), "mapping: "+per+" to entry"
			break
		}
		k.shape, k.values, k.what = table, kindOf(t.Elem(), tag, ""), "mapping: "+tag.Get("per")
		if !whole {
			k.what += " to " + k.values.what
		}
	case t == reflect.TypeFor[json.RawMessage]():
		k = &kind{shape: object, what: "mapping of anything", parse: parseObject, text: func(v reflect.Value) string { return string(v.Bytes()) }}
	case t.Kind() == reflect.Slice:
		k = &kind{shape: list, what: "list of names", everything: tag.Get("unset") == "all"}
		if k.texts = tag.Get("is") == "text"; k.texts {
			k.what = "list of texts"
		} else {
			k.check = lookUp(nameChecks, tag.Get("is"))
		}
	default:
		if k = scalarOf(t, tag, def); k == nil {
			panic("config: no kind of setting has the type " + t.String())
		}
	}
	k.omit = tag.Get("unset") == "omit"
	if k.truth = tag.Get("unset") == "none"; k.truth {
		k.what = "`true`, `false` or list of names"
	}
	return k
}

// scalarOf returns the kind of a single value, nil if no kind has the type.
func scalarOf(t reflect.Type, tag reflect.StructTag, def string) *kind {
	is, off := tag.Get("is"), tag.Get("off")
	switch t {
	case reflect.TypeFor[Ref]():
		return &kind{what: "text or reference", str: true, ref: lookUp(refChecks, is), text: func(v reflect.Value) string { return v.Interface().(Ref).String() },
			parse: func(s string) (any, error) { return Ref{value: secret.New(s)}, nil }}
	case reflect.TypeFor[time.Duration]():
		return durationKind(tag, off)
	case reflect.TypeFor[price.Money]():
		return moneyKind(tag, off)
	case reflect.TypeFor[*bool]():
		return newVocabulary("unset=auto,none true=yes,on false=no,off").kind(parseUnsetOrBool, textOfUnsetOrBool)
	case reflect.TypeFor[lathe.Decision]():
		values := map[string]lathe.Decision{"allow": lathe.Allow, "ask": lathe.Ask, "deny": lathe.Deny}
		return newVocabulary("allow=allowed,yes,true ask=approve,confirm deny=denied,no,false,block").kind(
			func(s string) any { return values[s] }, func(v reflect.Value) string { return v.Interface().(lathe.Decision).String() }).asText()
	case reflect.TypeFor[lathe.Effect]():
		values := map[string]lathe.Effect{"read_only": lathe.ReadOnly, "idempotent": lathe.Idempotent, "writes": lathe.Writes}
		v := newVocabulary("read_only=read,readonly idempotent writes=write")
		v.empty = true
		return v.kind(func(s string) any { return values[s] }, textOfEffect).asText()
	case reflect.TypeFor[lathe.Wire]():
		v := newVocabulary("openai=chat,openai_chat,chat_completions,completions responses=openai_responses anthropic=messages,claude gemini=google,generatecontent")
		v.empty = true
		return v.kind(func(s string) any { return wires[s] }, textOfWire).asText()
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
		return &kind{what: text.what, str: true, path: is == "file", text: reflect.Value.String, parse: func(s string) (any, error) {
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
		k := *lookUp(floatKinds, is) // every setting has its own, since kindOf completes it
		return &k
	}
	return nil
}

// lookUp returns what a tag names.
func lookUp[T any](m map[string]T, name string) T {
	v, ok := m[name]
	if !ok {
		panic("config: no kind of setting is called " + strconv.Quote(name))
	}
	return v
}

// set sets v from text: the scalar of the file, of a variable, of a flag.
func (k *kind) set(v reflect.Value, s string) error {
	switch {
	case k.shape == table:
		return errors.New("wants a mapping, " + k.names + " to value")
	case k.shape == group:
		return errors.New("wants a mapping of entries, each under its " + k.names)
	case k.texts && s != "":
		return errors.New("wants a list: one entry for each argument")
	case k.texts:
		v.SetZero()
		return nil
	case k.shape == list:
		items := []string{} // an empty list is not an unset one
		for item := range strings.SplitSeq(s, ",") {
			if item = strings.TrimSpace(item); item != "" {
				items = append(items, item)
			}
		}
		return k.setList(v, items)
	}
	parsed, err := k.parse(s)
	if err == nil {
		v.Set(reflect.ValueOf(parsed).Convert(v.Type()))
	}
	return err
}

// everything is the only word of a list that grants everything.
const everything = "*"

// setList sets a list, which is nil only if it grants everything.
func (k *kind) setList(v reflect.Value, items []string) error {
	if k.everything && slices.Equal(items, []string{everything}) {
		v.SetZero()
		return nil
	}
	if k.truth && len(items) == 1 {
		switch items[0] {
		case "true":
			items = []string{everything}
		case "false":
			items = []string{}
		}
	}
	seen := map[string]bool{}
	for _, item := range items {
		switch {
		case !k.texts:
			if err := k.check(item); err != nil {
				return err
			}
			if seen[item] {
				return errors.New(quote(item) + " stands twice")
			}
			seen[item] = true
		case strings.ContainsRune(item, 0):
			return errors.New("a text has a NUL in it")
		case strings.Contains(item, "${"):
			return errors.New("references ${…} are not read in arguments, which others can see: pass a secret in env")
		}
	}
	v.Set(reflect.ValueOf(slices.Clone(items)))
	return nil
}

// items returns a list as one would write it.
func (k *kind) items(v reflect.Value) []string {
	if k.everything && v.IsNil() {
		return []string{everything}
	}
	return v.Interface().([]string)
}

// asText makes the writer quote words that YAML reads as something else.
func (k *kind) asText() *kind {
	k.str = true
	return k
}

func parseUnsetOrBool(s string) any {
	if s == "unset" {
		return (*bool)(nil)
	}
	yes := s == "true"
	return &yes
}

func textOfUnsetOrBool(v reflect.Value) string {
	if v.IsNil() {
		return "unset"
	}
	return strconv.FormatBool(v.Elem().Bool())
}

func textOfEffect(v reflect.Value) string {
	if e := v.Interface().(lathe.Effect); e != lathe.EffectUndeclared {
		return e.String()
	}
	return ""
}

// wires are the words of the setting for the wires.
var wires = map[string]lathe.Wire{"openai": lathe.WireOpenAIChat, "responses": lathe.WireResponses, "anthropic": lathe.WireMessages, "gemini": lathe.WireGemini}

func textOfWire(v reflect.Value) string {
	for word, w := range wires {
		if w == v.Interface().(lathe.Wire) {
			return word
		}
	}
	return ""
}

// choiceKind reads a tool choice. "auto" is kept as the zero value: servers do the same if nothing is sent.
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

package gemini

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// AppendRelayed implements [wire.Upstream]. It replaces the model's name if the body has one, the overrides, and the tool choice if that of
// req differs. All other bytes are unchanged.
func (Codec) AppendRelayed(dst, body []byte, req *lathe.Request, _ *wire.EncodeOptions) []byte {
	var changes wire.Changes
	set := func(name string, v []byte) { changes.Set(spelling(body, name), v) }
	given := get(body, "toolConfig")
	config := given
	for _, m := range req.Overrides {
		v := []byte(m.Value)
		switch {
		case reserved(m.Name) || len(v) == 0:
			continue
		case m.Name == "toolConfig":
			config = merged(given, v)
			v = config
		case m.Name == "generationConfig":
			v = merged(get(body, m.Name), v)
		}
		set(m.Name, v)
	}
	if get(body, "model") != nil && req.Model != "" {
		set("model", rawjson.AppendQuote(nil, req.Model))
	}
	if len(req.Tools) > 0 && req.ToolChoice.Mode != "" && !sameChoice(config, req.ToolChoice) {
		set("toolConfig", merged(config, appendChoice([]byte{'{'}, req.ToolChoice, nil).Lit("}")))
	}
	return changes.Append(dst, body, nil)
}

// spelling returns the camel case name of a member of a request as body spells it.
func spelling(body []byte, name string) string {
	for key := range rawjson.Members(body) {
		if written := rawjson.Text(key); requestNames.spellings()[written] == name {
			return written
		}
	}
	return name
}

// merged returns the object given with the members of the object with added, which replace members with the same name. If one of them is no
// object, it returns with.
func merged(given, with []byte) []byte {
	if rawjson.Kind(given) != '{' || rawjson.Kind(with) != '{' {
		return with
	}
	out := wire.JSON("{")
	for key, v := range rawjson.Members(given) {
		if name := rawjson.Text(key); !spelledIn(with, name) {
			out = out.Pair(key, v)
		}
	}
	for key, v := range rawjson.Members(with) {
		out = out.Pair(key, v)
	}
	return out.Lit("}")
}

// spelledIn reports whether obj has the member name in either spelling.
func spelledIn(obj []byte, name string) bool {
	for key := range rawjson.Members(obj) {
		if k := rawjson.Text(key); k == name || snake(k) == snake(name) {
			return true
		}
	}
	return false
}

// sameChoice reports whether a toolConfig contains the tool choice c.
func sameChoice(config []byte, c lathe.ToolChoice) bool {
	if config == nil {
		return c.Mode == lathe.ChoiceAuto
	}
	r := &reader{Reader: wire.NewReader(nil)}
	if err := r.Try(func() { r.readToolConfig(config) }); err != nil {
		return false
	}
	said := r.ToolChoice
	if r.forced && len(r.allowed) == 1 {
		said = lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: innerName(r.allowed[0])}
	}
	return said == c || said.Mode == "" && c.Mode == lathe.ChoiceAuto
}

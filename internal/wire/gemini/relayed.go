package gemini

import (
	"bytes"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// AppendRelayed implements [wire.Upstream]. It replaces the model's name if the body has one, the overrides, and the tool choice if that of
// req differs. If nothing is replaced, it appends body unchanged, otherwise an object in which all other values are unchanged.
func (Codec) AppendRelayed(to, body []byte, req *lathe.Request, _ *wire.EncodeOptions) []byte {
	dst := wire.JSON(to)
	need := map[string][]byte{}
	for _, m := range req.Overrides {
		if reserved(m.Name) || len(m.Value) == 0 {
			continue
		}
		need[m.Name] = m.Value
		if given := get(body, m.Name); m.Name == "generationConfig" || m.Name == "toolConfig" {
			need[m.Name] = merged(given, m.Value)
		}
	}
	if given := get(body, "model"); given != nil && req.Model != "" {
		need["model"] = rawjson.AppendQuote(nil, req.Model)
	}
	config := get(body, "toolConfig")
	if override, ok := need["toolConfig"]; ok {
		config = override
	}
	if len(req.Tools) > 0 && req.ToolChoice.Mode != "" && !sameChoice(config, req.ToolChoice) {
		need["toolConfig"] = merged(config, appendChoice([]byte{'{'}, req.ToolChoice, nil).Lit("}"))
	}
	for name, v := range need {
		if bytes.Equal(get(body, name), v) {
			delete(need, name)
		}
	}
	if len(need) == 0 {
		return dst.Raw(body)
	}
	dst = dst.Lit("{")
	for key, v := range rawjson.Members(body) {
		name := rawjson.Text(key)
		if camel, ok := requestNames.spellings()[name]; ok {
			name = camel
		}
		if to, ok := need[name]; ok {
			v = to
			delete(need, name)
		}
		dst = dst.Pair(key, v)
	}
	for _, m := range req.Overrides { // in the order of the overrides
		if v, ok := need[m.Name]; ok {
			dst = dst.Val(m.Name, v)
			delete(need, m.Name)
		}
	}
	if v, ok := need["toolConfig"]; ok {
		dst = dst.Val("toolConfig", v)
	}
	return dst.Lit("}")
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

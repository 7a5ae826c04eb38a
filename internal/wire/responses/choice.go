package responses

import (
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// parseChoice parses the tool choice, which the caller compares with the tools. If it is a set of allowed tools, parseChoice
// bars the client's other tools in Request and in Hosted.
func (r *reader) parseChoice(v []byte) *wire.APIError {
	const at = "tool_choice"
	switch wire.Kind(v) {
	case 0:
		return nil
	case '"':
		return r.setMode(rawjson.Text(v), at)
	}
	if err := wire.CheckObject(v, choiceNames, at); err != nil {
		return err
	}
	typ, err := wire.ParseString(get(v, "type"), at+".type")
	if err != nil {
		return err
	}
	switch typ {
	case "function", typeCustom:
		name, err := r.chosen(v, at)
		if err != nil {
			return err
		}
		r.ToolChoice = lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: name}
	case "allowed_tools":
		if inner := get(v, "allowed_tools"); inner != nil { // the form of chat completions
			if err := wire.NeedObject(inner, at+".allowed_tools"); err != nil {
				return err
			}
			v = inner
		}
		return r.parseAllowed(v, at)
	default:
		found := false
		for i := range r.Hosted {
			if r.sameHosted(i, v, typ) {
				r.Hosted[i].Forced, found = true, true
			}
		}
		if !found {
			return wire.BadRequest(at+".type", "There is no tool of this type.")
		}
		r.foreign(wire.BadRequest(at+".type", "A choice of this type can only be passed on to a server of the same protocol."))
	}
	return nil
}

// setMode sets the tool choice to a mode.
func (r *reader) setMode(mode, at string) *wire.APIError {
	switch mode {
	case lathe.ChoiceAuto, lathe.ChoiceNone:
	case lathe.ChoiceRequired:
		for i := range r.Hosted {
			r.Hosted[i].Forced = !r.Hosted[i].Disallowed && (len(r.Tools) == 0 || r.Allowed != nil && len(r.Allowed) == 0)
		}
	default:
		return wire.BadRequest(at, "Must be auto, none, required or an object that names a tool.")
	}
	r.ToolChoice.Mode = mode
	return nil
}

// chosen returns the name in Request of the tool in a tool choice, which has the form of this wire or of chat completions.
func (r *reader) chosen(v []byte, at string) (string, *wire.APIError) {
	if inner := get(v, "function"); inner != nil {
		at += ".function"
		if err := wire.CheckObject(inner, choiceNames, at); err != nil {
			return "", err
		}
		v = inner
	}
	name, err := wire.ParseString(get(v, "name"), at+".name")
	if err != nil {
		return "", err
	}
	space := ""
	if raw := get(v, "namespace"); raw != nil {
		if space, err = wire.ParseString(raw, at+".namespace"); err != nil {
			return "", err
		}
	}
	return r.nameOf(space, name), nil
}

func (r *reader) parseAllowed(v []byte, at string) *wire.APIError {
	list := get(v, "tools")
	if err := wire.NeedArray(list, at+".tools"); err != nil {
		return err
	}
	r.Allowed = []string{}
	names := map[string]bool{}
	var allowed [maxHosted]bool // of Hosted
	i := 0
	for el := range rawjson.Elements(list) {
		at := at + ".tools[" + strconv.Itoa(i) + "]"
		i++
		if err := wire.CheckObject(el, choiceNames, at); err != nil {
			return err
		}
		typ, err := wire.ParseString(get(el, "type"), at+".type")
		if err != nil {
			return err
		}
		if typ != "function" && typ != typeCustom {
			for h := range r.Hosted {
				allowed[h] = allowed[h] || r.sameHosted(h, el, typ)
			}
			continue
		}
		name, err := r.chosen(el, at)
		if err != nil {
			return err
		}
		if !names[name] {
			names[name] = true
			r.Allowed = append(r.Allowed, name)
		}
	}
	hosted := 0 // that are allowed
	for i := range r.Hosted {
		if r.Hosted[i].Disallowed = !allowed[i]; allowed[i] {
			hosted++
		}
	}
	for _, t := range r.tools {
		t.Disallowed = !names[t.Name]
	}
	mode := get(v, "mode")
	if mode == nil {
		return nil
	}
	m, err := wire.ParseString(mode, at+".mode")
	if err != nil {
		return err
	}
	if m == lathe.ChoiceRequired && len(r.Allowed) == 1 && hosted == 0 {
		r.ToolChoice = lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: r.Allowed[0]}
		return nil
	}
	return r.setMode(m, at+".mode")
}

// sameHosted reports whether a tool choice names the i-th hosted tool.
func (r *reader) sameHosted(i int, choice []byte, typ string) bool {
	if r.Hosted[i].Type != typ {
		return false
	}
	label := text(choice, "server_label")
	return label == "" || label == r.labels[i]
}

package responses

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// readChoice parses the tool choice and compares it with the tools. If it is a set of allowed tools, readChoice marks the other tools of
// the client, in Tools and in Hosted, as disallowed.
func (r *reader) readChoice(body wire.Object) {
	const at = "tool_choice"
	switch rawjson.Kind(body.Get(at)) {
	case 0:
		return
	case '"':
		r.setMode(body, at)
		return
	}
	o := body.Object(at, choiceNames)
	switch typ := o.String("type"); typ {
	case "function", typeCustom:
		r.ToolChoice = lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: r.chosen(o)}
	case "allowed_tools":
		if o.Get(typ) != nil { // as on chat completions
			o = o.Object(typ, choiceNames)
		}
		r.readAllowed(o)
	default:
		found := false
		for i := range r.Hosted {
			if r.sameHosted(i, o, typ) {
				r.Hosted[i].Forced, found = true, true
			}
		}
		if !found {
			o.Fail("type", "There is no tool of this type.")
		}
		r.Refer(at+".type", "A choice of this type can only be passed on to a server of the same protocol.")
	}
}

// setMode sets the tool choice to the mode that the member name contains. A call that is required must be one of a hosted tool if the model
// may call no other tool.
func (r *reader) setMode(o wire.Object, name string) {
	mode := o.String(name)
	switch mode {
	case lathe.ChoiceAuto, lathe.ChoiceNone:
	case lathe.ChoiceRequired:
		noneAllowed := r.Allowed != nil && len(r.Allowed) == 0
		hostedOnly := len(r.Tools) == 0 || noneAllowed
		for i := range r.Hosted {
			r.Hosted[i].Forced = hostedOnly && !r.Hosted[i].Disallowed
		}
	default:
		o.Fail(name, "Must be auto, none, required or an object that names a tool.")
	}
	r.ToolChoice.Mode = mode
}

// chosen returns the internal name of the tool to which a tool choice refers. The choice has the form of this wire or of chat completions.
func (r *reader) chosen(o wire.Object) string {
	if o.Get("function") != nil {
		o = o.Object("function", choiceNames)
	}
	name := o.String("name")
	return r.nameOf(o.OptString("namespace"), name)
}

// readAllowed parses a set of allowed tools, and the mode for them. A set of one function, of which a call is required, becomes the choice
// of that function.
func (r *reader) readAllowed(o wire.Object) {
	r.Allowed = []string{}
	names := map[string]bool{} // those in Allowed
	for i := range r.Hosted {
		r.Hosted[i].Disallowed = true
	}
	allowsHosted := false
	for el := range o.Elements("tools") {
		choice := r.Object("", el, choiceNames)
		typ := choice.String("type")
		if typ == "function" || typ == typeCustom {
			if name := r.chosen(choice); !names[name] {
				names[name] = true
				r.Allowed = append(r.Allowed, name)
			}
			continue
		}
		for i := range r.Hosted {
			if r.sameHosted(i, choice, typ) {
				r.Hosted[i].Disallowed, allowsHosted = false, true
			}
		}
	}
	for _, t := range r.Tools {
		t.Disallowed = !names[t.Name]
	}
	if o.Get("mode") == nil {
		return
	}
	if o.String("mode") == lathe.ChoiceRequired && len(r.Allowed) == 1 && !allowsHosted {
		r.ToolChoice = lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: r.Allowed[0]}
		return
	}
	r.setMode(o, "mode")
}

// sameHosted reports whether a tool choice refers to hosted tool i.
func (r *reader) sameHosted(i int, choice wire.Object, typ string) bool {
	if r.Hosted[i].Type != typ {
		return false
	}
	label := rawjson.Text(choice.Get("server_label"))
	return label == "" || label == r.labels[i]
}

// sameChoice reports whether the tool choice of a body is equivalent to c.
func sameChoice(body []byte, c lathe.ToolChoice) bool {
	r := newReader(nil)
	err := r.Try(func() {
		o := r.Object("", body, requestNames)
		r.readTools(o)
		r.readChoice(o)
	})
	return err == nil && (r.ToolChoice == c || r.Foreign != nil)
}

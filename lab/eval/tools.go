package eval

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/lab/mock"
	"github.com/lathe-run/lathe/tool"
)

// This file parses the tools of a suite file, such as
//
//	tools:
//	  - name: get_weather
//	    schema: {type: object}
//	    effect: read_only
//	    answers:
//	      - {value: {degrees: 7}, times: 2}
//	      - {error: timeout}
//
// A [member] is a key of a mapping. Its value goes to a pointer, or to a function that is called with the node of the value.

// A mockTool is a tool of a suite with scripted answers and steps. A call has no effect outside of the run, so that unguarded runs are
// safe.
type mockTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"` // nil: any object
	Effect      string          `json:"effect,omitempty"` // read_only, idempotent or writes
	Hidden      bool            `json:"hidden,omitempty"`
	Show        []string        `json:"show,omitempty"` // fields of the output that the model may see; nil: all
	Timeout     time.Duration   `json:"timeout,omitempty"`
	Answers     []mock.Answer   `json:"answers,omitempty"`
	// Steps are what calls do to the database of the scenario, after all Answers have been returned.
	Steps []step `json:"steps,omitempty"`
}

// build returns the tool. Its steps use d; if d is nil, it has only the answers.
func (m *mockTool) build(d *database) *mock.Tool {
	spec := &lathe.ToolSpec{Name: m.Name, Description: m.Description, Schema: m.Schema, Hidden: m.Hidden, Allowlist: m.Show, Timeout: m.Timeout, Effect: lathe.Writes}
	for _, e := range []lathe.Effect{lathe.ReadOnly, lathe.Idempotent} {
		if m.Effect == e.String() {
			spec.Effect = e
		}
	}
	if len(m.Steps) > 0 && d != nil {
		return mock.New(spec, append(slices.Clone(m.Answers), mock.Func(func(_ context.Context, args json.RawMessage) (*lathe.Output, error) {
			raw, err := d.call(m.Steps, args)
			if err != nil {
				return nil, err
			}
			return &lathe.Output{Data: raw}, nil
		}))...)
	}
	return mock.New(spec, m.Answers...)
}

// maxTimes is the largest value of times of an answer.
const maxTimes = 1000

// tools parses tools into a list. They replace tools of the same name.
func (p *parser) tools(into *[]mockTool) member {
	return member{"tools", func(n *yaml.Node) error {
		here := map[string]bool{}
		return p.list(n, "tools", func(item *yaml.Node) error {
			m, err := p.tool(item)
			switch {
			case err != nil:
				return err
			case here[m.Name]:
				return p.errorf(item, "the tool %s stands twice", m.Name)
			}
			here[m.Name] = true
			if i := findTool(*into, m.Name); i >= 0 {
				(*into)[i] = m
			} else {
				*into = append(*into, m)
			}
			return nil
		})
	}}
}

func findTool(list []mockTool, name string) int {
	return slices.IndexFunc(list, func(m mockTool) bool { return m.Name == name })
}

func (p *parser) tool(n *yaml.Node) (mockTool, error) {
	var m mockTool
	timeout := ""
	err := p.mapping(n, "a tool", []member{
		{"name", &m.Name}, {"description", &m.Description}, {"schema", &m.Schema}, {"effect", &m.Effect},
		{"hidden", &m.Hidden}, {"show", &m.Show}, {"timeout", &timeout},
		{"answers", func(n *yaml.Node) error { return p.answers(n, &m.Answers) }},
		{"steps", func(n *yaml.Node) error { return p.list(n, "steps", p.step(&m.Steps)) }},
	})
	if err != nil {
		return m, err
	}
	if timeout != "" {
		if m.Timeout, err = time.ParseDuration(timeout); err != nil || m.Timeout <= 0 {
			return m, p.errorf(n, "timeout wants a time such as 50ms")
		}
	}
	if !slices.Contains([]string{"", "read_only", "idempotent", "writes"}, m.Effect) {
		return m, p.errorf(n, "effect is read_only, idempotent or writes")
	}
	if _, err := tool.NewSet(m.build(nil)); err != nil {
		return m, p.errorf(n, "this tool cannot be: %s", cause(err))
	}
	return m, p.checkSteps(n, &m)
}

// cause returns the error inside a [lathe.Error].
func cause(err error) error {
	if outer := (*lathe.Error)(nil); errors.As(err, &outer) && outer.Err != nil {
		return outer.Err
	}
	return err
}

// overlay parses answers by tool name, which replace the answers of these tools.
func (p *parser) overlay(into *[]mockTool) member {
	return member{"answers", func(n *yaml.Node) error {
		return p.entries(n, "answers", func(k, v *yaml.Node) error {
			i := findTool(*into, k.Value)
			if i < 0 {
				return p.errorf(k, "answers of %s, which is no tool of the suite", k.Value)
			}
			(*into)[i].Answers = nil
			return p.answers(v, &(*into)[i].Answers)
		})
	}}
}

func (p *parser) answers(n *yaml.Node, into *[]mock.Answer) error {
	return p.list(n, "answers", func(item *yaml.Node) error {
		a, times, err := p.answer(item)
		if err == nil {
			*into = append(*into, slices.Repeat([]mock.Answer{a}, times)...)
		}
		return err
	})
}

// answerKinds are the keys of which each answer has one, and what the tool does for them.
var answerKinds = map[string]mock.Kind{"value": mock.KindValue, "text": mock.KindValue, "raw": mock.KindRaw, "base64": mock.KindRaw, "size": mock.KindSize,
	"error": mock.KindError, "echo": mock.KindEcho, "hang": mock.KindHang, "panic": mock.KindPanic, "none": mock.KindNone}

// answer parses one answer. It has exactly one key of answerKinds, but an error may have a value, too.
func (p *parser) answer(n *yaml.Node) (a mock.Answer, times int, err error) {
	times = 1
	var enabled bool // the value of echo, hang, panic or none
	err = p.mapping(n, "an answer", []member{{"value", &a.Data}, {"text", &a.Text}, {"raw", &a.Text}, {"base64", &a.Text},
		{"size", &a.Size}, {"error", (*string)(&a.Code)}, {"echo", &enabled}, {"hang", &enabled}, {"panic", &enabled},
		{"none", &enabled}, {"times", &times}})
	if err != nil {
		return a, 0, err
	}
	var kinds []string                       // the keys of answerKinds that the answer has
	for i := 0; i < len(n.Content); i += 2 { // keys and values alternate
		if key := n.Content[i].Value; answerKinds[key] != "" {
			kinds = append(kinds, key)
		}
	}
	if slices.Contains(kinds, "error") {
		kinds = slices.DeleteFunc(kinds, func(key string) bool { return key == "value" })
	}
	switch {
	case len(kinds) != 1:
		return a, 0, p.errorf(n, "an answer has one of value, text, raw, base64, size, error, echo, hang, panic and none")
	case times < 1 || times > maxTimes:
		return a, 0, p.errorf(n, "times is from 1 to %d", maxTimes)
	}
	a.Kind = answerKinds[kinds[0]]
	switch kinds[0] {
	case "text":
		a = mock.Text(a.Text)
	case "base64":
		b, err := base64.StdEncoding.DecodeString(a.Text)
		if err != nil {
			return a, 0, p.errorf(n, "base64 wants base64")
		}
		a.Text = string(b)
	case "size":
		if a.Size < 2 || a.Size > mock.MaxBytes {
			return a, 0, p.errorf(n, "size is from 2 to %d", mock.MaxBytes)
		}
	case "echo", "hang", "panic", "none":
		if !enabled {
			return a, 0, p.errorf(n, "%s wants true", kinds[0])
		}
	}
	return a, times, nil
}

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

// build returns the tool, which uses d if it has steps. If unguarded is true, neither the tool nor fields are hidden.
func (m *mockTool) build(unguarded bool, d *database) *mock.Tool {
	spec := &lathe.ToolSpec{Name: m.Name, Description: m.Description, Schema: m.Schema, Hidden: m.Hidden, Allowlist: m.Show, Timeout: m.Timeout}
	switch m.Effect {
	case lathe.ReadOnly.String():
		spec.Effect = lathe.ReadOnly
	case lathe.Idempotent.String():
		spec.Effect = lathe.Idempotent
	default:
		spec.Effect = lathe.Writes
	}
	if unguarded {
		spec.Hidden, spec.Allowlist = false, nil
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
	if _, err := tool.NewSet(m.build(false, nil)); err != nil {
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

// answer parses one answer. Exactly one key is its kind.
func (p *parser) answer(n *yaml.Node) (a mock.Answer, times int, err error) {
	times = 1
	var text, coded, code string
	var value json.RawMessage
	var echo, hang, panics, none bool
	kinds := map[string]mock.Kind{"value": mock.KindValue, "text": mock.KindValue, "raw": mock.KindRaw, "base64": mock.KindRaw, "size": mock.KindSize,
		"error": mock.KindError, "echo": mock.KindEcho, "hang": mock.KindHang, "panic": mock.KindPanic, "none": mock.KindNone}
	err = p.mapping(n, "an answer", []member{{"value", &value}, {"text", &text}, {"raw", &a.Text}, {"base64", &coded},
		{"size", &a.Size}, {"error", &code}, {"echo", &echo}, {"hang", &hang}, {"panic", &panics},
		{"none", &none}, {"times", &times}})
	if err != nil {
		return a, 0, err
	}
	var lines []string
	for i := 0; i < len(n.Content); i += 2 {
		if k := n.Content[i].Value; kinds[k] != "" {
			lines = append(lines, k)
			a.Kind = kinds[k]
		}
	}
	if slices.Contains(lines, "error") { // an error may have a value, too
		a.Kind, a.Code, a.Data = mock.KindError, lathe.Code(code), value
		lines = slices.DeleteFunc(lines, func(s string) bool { return s == "value" })
	}
	switch {
	case len(lines) != 1:
		return a, 0, p.errorf(n, "an answer has one of value, text, raw, base64, size, error, echo, hang, panic and none")
	case times < 1 || times > maxTimes:
		return a, 0, p.errorf(n, "times is from 1 to %d", maxTimes)
	}
	switch lines[0] {
	case "value":
		a.Data = value
	case "text":
		a = mock.Text(text)
	case "base64":
		b, err := base64.StdEncoding.DecodeString(coded)
		if err != nil {
			return a, 0, p.errorf(n, "base64 wants base64")
		}
		a.Text = string(b)
	case "size":
		if a.Size < 2 || a.Size > mock.MaxBytes {
			return a, 0, p.errorf(n, "size is from 2 to %d", mock.MaxBytes)
		}
	case "echo", "hang", "panic", "none":
		if !echo && !hang && !panics && !none {
			return a, 0, p.errorf(n, "%s wants true", lines[0])
		}
	}
	return a, times, nil
}

package destination

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

func system(s string) lathe.Message    { return lathe.System(s) }
func user(s string) lathe.Message      { return lathe.User(s) }
func assistant(s string) lathe.Message { return lathe.Assistant(s) }

func developer(s string) lathe.Message {
	return lathe.Message{Role: lathe.RoleDeveloper, Parts: []lathe.Part{lathe.Text{Text: s}}}
}

func calls(id string) lathe.Message {
	return lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: id, Name: "f", Arguments: "{}"}}}
}

func result(id, s string) lathe.Message {
	return lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: id, Content: s}}}
}

// show writes the roles and texts of the messages that are sent.
func show(msgs []lathe.Message) string {
	var out []string
	for _, m := range msgs {
		if m.Role == "" {
			continue
		}
		s := string(m.Role) + ":" + m.Text()
		for _, p := range m.Parts {
			switch p := p.(type) {
			case lathe.ToolResult:
				s += p.Content
			case lathe.Blob:
				s += "[" + p.MediaType + "]"
			case lathe.ToolCall:
				s += "call"
			default:
			}
		}
		out = append(out, s)
	}
	return strings.ReplaceAll(strings.Join(out, " | "), "\n", "/")
}

func apply(c *Conversation, msgs []lathe.Message) ([]lathe.Message, []string) {
	msgs, changed := c.Roles(msgs, nil, nil)
	return c.Join(msgs, changed)
}

func TestConversation(t *testing.T) {
	t.Parallel()
	image := lathe.Blob{MediaType: "image/png", Data: []byte{1}}
	text := lathe.Blob{MediaType: "text/csv; charset=utf-8", Name: `a "b"`, Data: []byte("1,2")}
	for name, c := range map[string]struct {
		row     Row
		in      []lathe.Message
		want    string
		changed string
	}{
		"no rules":                  {Row{}, []lathe.Message{system("a"), developer("b"), user("c"), system("d")}, "system:a | developer:b | user:c | system:d", ""},
		"one":                       {template, []lathe.Message{system("a"), developer("b"), user("c"), assistant("d"), system("e"), user("f")}, "system:a//b | user:c | assistant:d | user:<system>/e/</system>//f", "messages[1].role messages[4].role"},
		"at the end":                {template, []lathe.Message{system("a"), user("b"), system("c")}, "system:a | user:b//<system>/c/</system>", "messages[2].role"},
		"leading":                   {Row{System: Leading}, []lathe.Message{system("a"), developer("b"), user("c"), system("d"), system(" ")}, "system:a | developer:b | user:c | user:<system>/d/</system> | user: ", "messages[3].role messages[4].role"},
		"developer":                 {Row{Developer: no}, []lathe.Message{developer("a"), user("b"), developer("c")}, "system:a | user:b | system:c", "messages[0].role messages[2].role"},
		"system only":               {template, []lathe.Message{system("a")}, "user:<system>/a/</system>", "messages[0].role"},
		"systems only":              {template, []lathe.Message{system("a"), developer("b")}, "system:a | user:<system>/b/</system>", "messages[1].role"},
		"assistant first":           {template, []lathe.Message{system("a"), assistant("b"), user("c")}, "system:a | assistant:b | user:c", ""},
		"assistant first, in turns": {StrictRoles, []lathe.Message{system("a"), assistant("b"), user("c")}, "user:<system>/a/</system> | assistant:b | user:c", "messages[0].role"},
		"developer with an image":   {template, []lathe.Message{system("a"), {Role: lathe.RoleDeveloper, Parts: []lathe.Part{lathe.Text{Text: "b"}, image}}, user("c")}, "system:a | user:<system>/b/</system>//c[image/png]", "messages[1].role"},
		"after a result":            {template, []lathe.Message{user("a"), calls("1"), result("1", "r"), user("b")}, "user:a | assistant:call | tool:r | user:b", ""},
		"after a result, in turns": {StrictRoles, []lathe.Message{user("a"), calls("1"), result("1", "q"), result("2", "r"), user("b"), system("c"), assistant("d"), user("e")},
			"user:a | assistant:call | tool:q | tool:r//b//<system>/c/</system> | assistant:d | user:e", "messages[5].role messages[4].role"},
		"names": {template, []lathe.Message{user("a"), {Role: lathe.RoleUser, Name: "n", Extra: []lathe.Member{{Name: "x"}}, Parts: []lathe.Part{lathe.Text{Text: "b"}}}}, "user:a//b", "messages[1].name messages[1].x"},
		"documents": {Row{Documents: asText}, []lathe.Message{{Role: lathe.RoleUser, Parts: []lathe.Part{text, image, lathe.Text{Text: "q"}}}, calls("1"), {Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "1", Content: "r", Blobs: []lathe.Blob{image, text}}}}},
			`user:<document title="a \"b\"">/1,2/</document>/q[image/png] | assistant:call | tool:r//<document title="a \"b\"">/1,2/</document>/`, ""},
		"a document of blocks":     {Row{Documents: asText}, []lathe.Message{{Role: lathe.RoleUser, Wire: messages, Parts: []lathe.Part{lathe.Opaque{JSON: []byte(`{"type":"document","title":"t","source":{"type":"content","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}}`)}}}}, `user:<document title="t">/x//y/</document>/`, ""},
		"a document with an image": {Row{Documents: asText}, []lathe.Message{{Role: lathe.RoleUser, Wire: messages, Parts: []lathe.Part{lathe.Opaque{JSON: []byte(`{"type":"document","source":{"type":"content","content":[{"type":"image"}]}}`)}}}}, `user:`, ""},
	} {
		given := slices.Clone(c.in)
		conversation := c.row.NewConversation()
		got, changed := apply(&conversation, c.in)
		if s := show(got); s != c.want || strings.Join(changed, " ") != c.changed || len(got) != len(c.in) {
			t.Errorf("%s:\n%s\nwant\n%s\nchanged %q", name, s, c.want, changed)
		}
		if !reflect.DeepEqual(given, c.in) {
			t.Errorf("%s: the given messages were changed", name)
		}
	}
}

// What joining leaves out is listed, and the place of each part that was moved is that of the part as it was given.
func TestJoinedPartsKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	cache := []lathe.Member{{Name: "cache_control", Value: []byte("{}")}}
	image := lathe.Blob{MediaType: "image/png", Data: []byte{1}}
	for name, c := range map[string]struct {
		row     Row
		in      []lathe.Message
		want    string
		changed string
		places  map[string]string // by what they are after joining
	}{
		"parts that only their wire knows": {OneSystem, []lathe.Message{user("a"), {Role: lathe.RoleUser, Wire: messages, Parts: []lathe.Part{lathe.Opaque{JSON: []byte("{}")}, lathe.Text{Text: "b", Extra: cache},
			lathe.Blob{MediaType: "image/png", Data: []byte{1}, Raw: []byte("{}")}, lathe.Blob{Raw: []byte("{}")}, lathe.Text{Text: "c"}}}}, "user:a//bc[image/png]", "messages[1].parts[0] messages[1].parts[1].cache_control messages[1].parts[2].raw messages[1].parts[3]",
			map[string]string{"messages[0].parts[0].x": "messages[0].parts[0].x", "messages[0].parts[1].detail": "messages[1].parts[2].detail", "messages[0].parts[2]": "messages[1].parts[4]", "messages[0].role": "messages[0].role", "tools[0]": "tools[0]"}},
		"parts of one wire": {OneSystem, []lathe.Message{user("a"), {Role: lathe.RoleUser, Parts: []lathe.Part{lathe.Text{Text: "b", Extra: cache}}}, {Role: lathe.RoleUser, Parts: []lathe.Part{lathe.Text{}, image, lathe.Opaque{JSON: []byte("{}")}}}}, "user:a//b[image/png]", "",
			map[string]string{"messages[0].parts[1].cache_control": "messages[1].parts[0].cache_control", "messages[0].parts[2]": "messages[2].parts[1]", "messages[0].parts[3]": "messages[2].parts[2]"}},
		"in a result": {StrictRoles, []lathe.Message{user("a"), calls("1"), {Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "1", Content: "r", Blobs: []lathe.Blob{image}}}},
			{Role: lathe.RoleUser, Parts: []lathe.Part{lathe.Opaque{JSON: []byte("{}")}, lathe.Text{Text: "b", Extra: cache}, image}}}, "user:a | assistant:call | tool:r//b", "messages[3].role messages[3].parts[0] messages[3].parts[1].cache_control",
			map[string]string{"messages[2].parts[0].blobs[1].raw": "messages[3].parts[2].raw", "messages[2].parts[0].blobs[0]": "messages[2].parts[0].blobs[0]"}},
	} {
		conversation := c.row.NewConversation()
		got, changed := apply(&conversation, c.in)
		if s := show(got); s != c.want || strings.Join(changed, " ") != c.changed {
			t.Errorf("%s:\n%s\nwant\n%s\nchanged %q", name, s, c.want, changed)
		}
		for path, want := range c.places {
			if at := conversation.Place(path); at != want {
				t.Errorf("%s: the place of %s is %s, want %s", name, path, at, want)
			}
		}
	}
}

// When a conversation grows, each message that was sent stays, up to the last one, which may grow: servers find what they have cached.
func TestConversationKeepsItsBeginning(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		msgs := []lathe.Message{system("s")}[:r.IntN(2)]
		for n := 1 + r.IntN(8); n > 0; n-- {
			msgs = append(msgs, []lathe.Message{system("a"), developer("b"), user("c"), assistant("d"), calls("1"), result("1", "r")}[r.IntN(6)])
		}
		msgs = append(msgs, user("z"))
		lead := slices.IndexFunc(msgs, func(m lathe.Message) bool { return !isSystem(&m) })
		for _, row := range []Row{template, StrictRoles, {System: Leading}, {Developer: no}} {
			whole := row.NewConversation()
			out, _ := apply(&whole, msgs)
			sent := sentOnly(out)
			end := lead + 1 + r.IntN(len(msgs)-lead)
			part := row.NewConversation()
			out, _ = apply(&part, msgs[:end])
			before := sentOnly(out)
			for i, m := range before[:len(before)-1] {
				if !reflect.DeepEqual(m, sent[i]) {
					t.Fatalf("%+v: %s\nmessage %d of the first %d was %s and is %s", row, show(msgs), i, end, show([]lathe.Message{m}), show(sent[i:i+1]))
				}
			}
		}
	}
}

func sentOnly(msgs []lathe.Message) (out []lathe.Message) {
	for _, m := range msgs {
		if m.Role != "" {
			out = append(out, m)
		}
	}
	return out
}

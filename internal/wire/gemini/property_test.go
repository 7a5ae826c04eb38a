package gemini

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// someConversation makes a conversation in the form that ParseRequest gives.
func someConversation(r *rand.Rand) []lathe.Message {
	extra := func() []lathe.Member {
		if r.IntN(4) > 0 {
			return nil
		}
		return []lathe.Member{{Name: "partMetadata", Value: raw(`{"a":[1.50]}`)}}
	}
	text := func() string { return []string{"a", "ø\n", "{}", "\"", "<system>"}[r.IntN(5)] }
	blob := func() lathe.Blob {
		if r.IntN(2) == 0 {
			return lathe.Blob{MediaType: "image/png", Data: []byte{1, byte(r.IntN(256))}, Name: "n"}
		}
		return lathe.Blob{MediaType: "video/mp4", URL: "https://example.org/v"}
	}
	message := func(role lathe.Role) lathe.Message { return lathe.Message{Role: role, Wire: lathe.WireGemini} }
	var msgs []lathe.Message
	if r.IntN(2) == 0 {
		m := message(lathe.RoleSystem)
		m.Parts = []lathe.Part{lathe.Text{Text: "s"}, lathe.Text{Text: text(), Extra: extra()}}
		msgs = append(msgs, m)
	}
	calls := 0
	for range 1 + r.IntN(4) {
		m := message(lathe.RoleUser)
		for range 1 + r.IntN(3) {
			switch r.IntN(3) {
			case 0:
				m.Parts = append(m.Parts, blob())
			case 1:
				m.Parts = append(m.Parts, lathe.Opaque{JSON: raw(`{"codeExecutionResult":{"outcome":"OK"}}`)})
			default:
				m.Parts = append(m.Parts, lathe.Text{Text: text(), Extra: extra()})
			}
		}
		msgs = append(msgs, m)
		m = message(lathe.RoleAssistant)
		var results []lathe.Message
		for range 1 + r.IntN(6) {
			sign := func() {
				if r.IntN(2) == 0 {
					m.Parts = append(m.Parts, lathe.Reasoning{Field: fieldSignature, Data: "c2ln"})
				}
			}
			switch r.IntN(6) {
			case 0:
				m.Parts = append(m.Parts, lathe.Reasoning{Text: text(), Field: fieldThought, Data: []string{"", "dA=="}[r.IntN(2)]})
			case 1:
				m.Parts = append(m.Parts, lathe.Reasoning{Field: fieldSignature, Data: "YQ=="}, lathe.Text{}) // in the middle
				m.Parts = append(m.Parts, lathe.Text{Text: "after"})
			case 2:
				sign()
				m.Parts = append(m.Parts, lathe.Opaque{JSON: raw(`{"executableCode":{"code":"1"}}`)})
			case 3:
				sign()
				m.Parts = append(m.Parts, blob())
			case 4:
				sign()
				m.Parts = append(m.Parts, lathe.Text{Text: text(), Extra: extra()})
			default:
				sign()
				calls++
				c := lathe.ToolCall{ID: fmt.Sprint("c", calls), Name: "f", Arguments: `{"n":12345678901234567890,"f":1.50}`, Extra: extra()}
				m.Parts = append(m.Parts, c)
				t := message(lathe.RoleTool)
				result := lathe.ToolResult{CallID: c.ID, Name: c.Name, Content: text(), IsError: r.IntN(2) == 0, Extra: extra()}
				if r.IntN(3) == 0 {
					result.Blobs = []lathe.Blob{blob()}
				}
				t.Parts = []lathe.Part{result}
				results = append(results, t)
			}
		}
		if r.IntN(3) == 0 {
			m.Parts = append(m.Parts, lathe.Reasoning{Field: fieldSignature, Data: "ZW5k"})
		}
		msgs = append(append(msgs, m), results...)
	}
	return msgs
}

func TestConversationIsTheSameAfterTheWire(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		msgs := someConversation(rand.New(rand.NewPCG(seed, 3)))
		body, dropped := encode(t, &lathe.Request{Messages: msgs}, nil)
		if len(dropped) > 0 {
			t.Fatalf("dropped %v", dropped)
		}
		req := mustParse(t, body)
		if same(t, "messages", req.Messages, msgs); t.Failed() || len(req.Dropped) > 0 {
			t.Fatalf("seed %d, dropped %v\n%s", seed, req.Dropped, body)
		}
	}
}

func TestRequestsOfAGrowingConversationBeginTheSame(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		msgs := someConversation(rand.New(rand.NewPCG(seed, 4)))
		if seed%2 == 0 { // of another wire
			for i := range msgs {
				msgs[i].Wire = lathe.WireMessages
			}
		}
		before := ""
		for n := 2; n <= len(msgs); n++ {
			if n < len(msgs) && msgs[n].Role == lathe.RoleTool { // within a step
				continue
			}
			body, _ := encode(t, &lathe.Request{Model: "gemini-3-pro", Messages: msgs[:n]}, &wire.EncodeOptions{Entry: "e"})
			if !strings.HasPrefix(body, before) {
				t.Fatalf("seed %d:\n%s\ndoes not begin with\n%s", seed, body, before)
			}
			before = strings.TrimSuffix(body, "]}")
		}
	}
}

// A text that is cut into other chunks is the same answer.
func TestAssemblerJoinsChunks(t *testing.T) {
	t.Parallel()
	chunk := func(text, thought, rest string) string {
		return `{"candidates":[{"content":{"parts":[{"text":"` + text + `"` + thought + `}]}` + rest + `}]}`
	}
	const text = "abcdefgh"
	for cut := range 1 << (len(text) - 1) {
		for _, thought := range []string{"", `,"thought":true`} {
			var data []string
			from := 0
			for i := 1; i <= len(text); i++ {
				if i == len(text) || cut>>(i-1)&1 == 1 {
					data = append(data, chunk(text[from:i], thought, ""))
					from = i
				}
			}
			_, f := mustAssemble(t, append(data, chunk("", "", `,"finishReason":"STOP"`)))
			got := fmt.Sprintf("%+v", f.Message.Parts)
			if want := map[string]string{"": "[{Text:abcdefgh Commentary:false Unreadable:false Extra:[]}]"}[thought]; thought == "" && got != want ||
				thought != "" && got != "[{Text:abcdefgh Field:thought Data: ID: Entry:}]" {
				t.Fatal(got)
			}
		}
	}
}

// Contents that no client should send are read to a conversation that is the same after the wire.
func TestOddContentsAreTheSameAfterTheWire(t *testing.T) {
	t.Parallel()
	both := []string{`{}`, `{"text":""}`, `{"text":"a"}`, `{"text":"b","k":1}`, `{"new":1}`, `{"fileData":{"fileUri":"gs://b"},"k":1}`, `{"inlineData":{"mimeType":"a/b","data":"_-8"}}`, `{"thoughtSignature":"YQ=="}`}
	user := append([]string{`{"functionResponse":{"name":"f","response":{"output":"x"}}}`, `{"functionResponse":{"id":"1","name":"f","response":{"error":{"a":1}},"k":1}}`,
		`{"functionResponse":{"id":"2","name":"g","parts":[{"inlineData":{"mimeType":"a/b","data":"AQ=="}}]}}`}, both...)
	model := append([]string{`{"text":"t","thought":true}`, `{"text":"","thought":true,"thoughtSignature":"Yg=="}`, `{"thought":true}`, `{"text":"c","thoughtSignature":"Yw=="}`,
		`{"functionCall":{"name":"f"}}`, `{"functionCall":{"id":"1","name":"f","args":{"a":1}},"thoughtSignature":"ZA=="}`, `{"functionCall":{"id":"2","name":"g.h","z":1},"k":1}`,
		`{"functionCall":{"id":"1","name":"g"}}`, `{"executableCode":{},"thoughtSignature":"ZQ=="}`}, both...)
	for seed := range uint64(700) {
		r := rand.New(rand.NewPCG(seed, 5))
		contents := []string{`{"parts":[{"text":"q"}]}`}
		for range r.IntN(6) {
			role, from := "user", user
			if r.IntN(2) == 0 {
				role, from = "model", model
			}
			var parts []string
			for range r.IntN(4) {
				parts = append(parts, from[r.IntN(len(from))])
			}
			contents = append(contents, `{"role":"`+role+`","parts":[`+strings.Join(parts, ",")+`]}`)
		}
		body := `{"contents":[` + strings.Join(contents, ",") + `]}`
		first := mustParse(t, body)
		again, _ := encode(t, &first.Request, nil)
		second := mustParse(t, again)
		if same(t, "messages", second.Messages, first.Messages); t.Failed() {
			t.Fatalf("seed %d\n%s\n%s", seed, body, again)
		}
	}
}

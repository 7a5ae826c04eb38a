package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A Prompt computes the two hashes of a conversation that grows. It stores the state of the hashes after the last message, so that the time
// of a turn depends on its new messages only. Only one goroutine at a time may use it. NewPrompt creates one.
//
// phv1 is the hash of the text that ECMAScript's JSON.stringify writes, without white space and with the keys in this order, for
//
//	{"prompt_hash_version":"phv1","model":…,"messages":[{"role":…,"content":…},…],"temperature":…,"max_tokens":…}
//
// where content is the text of a message (possibly ""), or the text of a tool result that the model receives. If temperature and max_tokens
// are not set, they are 0.7 and 2048. Tools, calls and ids are not hashed.
//
// phv2 is the hash of a text of the same form, for
//
//	{"prompt_hash_version":"phv2","model":…,"messages":[{"role":…,"content":…,…},…],"sampling":…,"tools":…,…}
//
// where a message also has, if present, "name", "refusal", "blobs", "tool_calls" (id, name and argument text of each) and "tool_call_id";
// sampling has the options that are set, including stop and response_format; tools is the result of [Tools]; and tool_choice is the last
// member if there are tools and a choice. An empty list of tools has the same hash as no tools.
type Prompt struct {
	v1, v2 hash.Cloner // states of the hashes after the last message
	empty  bool        // there is no message yet
}

// NewPrompt returns an empty conversation with the model of this name.
func NewPrompt(model string) *Prompt {
	start := func(version string) hash.Cloner {
		b := append(make([]byte, 0, 128), `{"prompt_hash_version":"`+version+`","model":`...)
		b = rawjson.AppendQuote(b, model)
		h := sha256.New().(hash.Cloner)
		h.Write(append(b, `,"messages":[`...))
		return h
	}
	return &Prompt{v1: start("phv1"), v2: start("phv2"), empty: true}
}

// Add appends messages to the conversation.
func (p *Prompt) Add(messages ...lathe.Message) {
	b := make([]byte, 0, 256)
	for i := range messages {
		m := &messages[i]
		b = b[:0]
		if !p.empty {
			b = append(b, ',')
		}
		p.empty = false
		b = append(b, `{"role":`...)
		b = rawjson.AppendQuote(b, string(m.Role))
		b = append(b, `,"content":`...)
		b = rawjson.AppendQuote(b, content(m))
		end := len(b)
		b = append(b, '}')
		p.v1.Write(b)
		b = appendRest(b[:end], m)
		b = append(b, '}')
		p.v2.Write(b)
	}
}

// content returns the text of a message or, for a tool message, the text of its first tool result.
func content(m *lathe.Message) string {
	if m.Role == lathe.RoleTool {
		for _, part := range m.Parts {
			if r, ok := part.(lathe.ToolResult); ok {
				return r.Content
			}
		}
	}
	return m.Text()
}

// appendRest appends the members of a message that only phv2 contains.
func appendRest(b []byte, m *lathe.Message) []byte {
	if m.Name != "" {
		b = rawjson.AppendQuote(append(b, `,"name":`...), m.Name)
	}
	var blobs []lathe.Blob
	for _, part := range m.Parts {
		switch part := part.(type) {
		case lathe.Refusal:
			b = rawjson.AppendQuote(append(b, `,"refusal":`...), part.Text)
		case lathe.ToolResult:
			b = rawjson.AppendQuote(append(b, `,"tool_call_id":`...), part.CallID)
			b = appendBlobs(b, part.Blobs)
		case lathe.Blob:
			blobs = append(blobs, part)
		default: // text is in phv1 and phv2, calls follow, reasoning is not hashed
		}
	}
	b = appendBlobs(b, blobs)
	calls := 0
	for _, part := range m.Parts {
		c, ok := part.(lathe.ToolCall)
		if !ok {
			continue
		}
		calls++
		if calls == 1 {
			b = append(b, `,"tool_calls":[`...)
		} else {
			b = append(b, ',')
		}
		b = rawjson.AppendQuote(append(b, `{"id":`...), c.ID)
		b = rawjson.AppendQuote(append(b, `,"name":`...), c.Name)
		b = rawjson.AppendQuote(append(b, `,"arguments":`...), c.Arguments)
		b = append(b, '}')
	}
	if calls > 0 {
		b = append(b, ']')
	}
	return b
}

// appendBlobs appends each blob with the hash of its content in place of the content.
func appendBlobs(b []byte, blobs []lathe.Blob) []byte {
	for i, blob := range blobs {
		if i == 0 {
			b = append(b, `,"blobs":[`...)
		} else {
			b = append(b, ',')
		}
		sum := sha256.Sum256(blob.Data)
		b = rawjson.AppendQuote(append(b, `{"media_type":`...), blob.MediaType)
		b = rawjson.AppendQuote(append(b, `,"url":`...), blob.URL)
		b = hex.AppendEncode(append(b, `,"sha256":"`...), sum[:])
		b = rawjson.AppendQuote(append(b, `","name":`...), blob.Name)
		b = rawjson.AppendQuote(append(b, `,"detail":`...), blob.Detail)
		if len(blob.Raw) > 0 {
			b = appendValue(append(b, `,"raw":`...), blob.Raw)
		}
		b = append(b, '}')
	}
	if len(blobs) > 0 {
		b = append(b, ']')
	}
	return b
}

// Sum returns phv1 and phv2 of the current conversation. A nil s means that no option is set. tools is the result of [Tools] for the
// offered tools. Sum does not change the conversation.
func (p *Prompt) Sum(s *lathe.Sampling, tools string, choice lathe.ToolChoice) (v1, v2 string) {
	if s == nil {
		s = &lathe.Sampling{}
	}
	buf := make([]byte, 0, 256)
	v1 = finish(p.v1, appendTail1(buf, s))
	return v1, finish(p.v2, appendTail2(buf, s, tools, choice))
}

// finish returns the hash of the text written to h followed by tail. h is not changed.
func finish(h hash.Cloner, tail []byte) string {
	end, err := h.Clone()
	if err != nil {
		panic("digest: copying the state of SHA-256: " + err.Error())
	}
	end.Write(tail)
	return hex.EncodeToString(end.Sum(nil))
}

// appendTail2 appends the part of the phv2 text that follows the messages.
func appendTail2(b []byte, s *lathe.Sampling, tools string, choice lathe.ToolChoice) []byte {
	b = appendSampling(append(b, `],"sampling":{`...), s)
	b = append(append(append(b, `},"tools":"`...), tools...), '"')
	if tools != NoTools && choice != (lathe.ToolChoice{}) {
		b = rawjson.AppendQuote(append(b, `,"tool_choice":{"mode":`...), choice.Mode)
		b = rawjson.AppendQuote(append(b, `,"name":`...), choice.Name)
		b = append(b, '}')
	}
	return append(b, '}')
}
